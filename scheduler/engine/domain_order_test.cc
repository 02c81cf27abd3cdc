// Where a pod goes that looks at other nodes through their domains: the order of nodes that is kept
// from placement to placement, against a scan of all nodes by a framework that keeps nothing.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "scheduler/engine/gang.h"
#include "scheduler/engine/placer.h"
#include "scheduler/framework/score_tiers.h"
#include "scheduler/plugins/domain_world_testing.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using plugins::testing::DomainWorld;
using state::PodStatus;

std::unique_ptr<framework::Framework> MakeFramework(bool idle_first) {
  framework::Registry registry;
  EXPECT_TRUE(plugins::RegisterAll(registry).ok());
  framework::Profile profile = framework::DefaultProfile();
  profile.idle_first = idle_first;
  return *framework::Framework::Make(profile, registry);
}

struct Place {
  state::NodeId node = state::kNoId;
  bool starts = false;
  friend bool operator==(const Place&, const Place&) = default;
};

class OrderedWorld {
 public:
  OrderedWorld(uint64_t seed, NodeOrders::Limits limits, bool idle_first)
      : world_(seed),
        idle_first_(idle_first),
        counters_(world_.state()),
        placer_(world_.state(), *framework_, state::GpuOrder::kPack, limits) {
    world_.state().Subscribe(&counters_);
    for (state::StateSubscriber* each : placer_.Subscribers()) world_.state().Subscribe(each);
    framework_->Attach(&counters_);
  }
  ~OrderedWorld() {
    framework_->Attach(nullptr);
    for (state::StateSubscriber* each : placer_.Subscribers()) world_.state().Unsubscribe(each);
    world_.state().Unsubscribe(&counters_);
  }

  void Step() {
    world_.Step();
    if (world_.OneIn(2)) return;
    state::Transaction txn(world_.state());
    for (size_t i = world_.Below(3); i > 0; --i) world_.Try(txn);
    for (size_t i = world_.Below(4); i > 0; --i) {
      const auto mark = txn.Mark();
      ASSERT_NO_FATAL_FAILURE(PlaceAll(txn));
      if (world_.OneIn(2)) txn.RollbackTo(mark);
      if (world_.OneIn(3)) world_.Try(txn);
    }
    ASSERT_NO_FATAL_FAILURE(PlaceAll(txn));
    ASSERT_EQ(placer_.CheckConsistency(), "");
    if (world_.OneIn(4)) txn.Commit();
  }

  [[nodiscard]] int64_t placed() const { return placed_; }
  [[nodiscard]] int64_t by_order() const { return by_order_; }

 private:
  // The first workloads that wait, one after the other.
  void PlaceAll(state::Transaction& txn) {
    state::ClusterState& state = world_.state();
    std::vector<state::PodId> waiting;
    state.ForEachPod([&](const state::PodRecord& pod) {
      if (pod.status == PodStatus::kPending && pod.workload != state::kNoId) {
        waiting.push_back(pod.id);
      }
    });
    for (const state::PodId pod : waiting) {
      if (world_.OneIn(2)) continue;
      const auto mode = world_.OneIn(4) ? Placer::Mode::kPromise : Placer::Mode::kStart;
      const Place expected = Scan(state.pod(pod).pod_class, mode);
      const state::Workload& workload = state.workload(state.pod(pod).workload);
      const TasksToAllocate step = NextStep(state, workload);
      ASSERT_EQ(step.pods.size(), 1u);
      if (framework_->ByDomain(state.class_of(pod))) ++by_order_;
      placer_.Place(txn, workload, step, mode);
      const state::PodRecord& record = state.pod(pod);
      ASSERT_EQ(NameOf(record.node), NameOf(expected.node)) << record.name;
      ASSERT_EQ(record.status == PodStatus::kBinding, expected.starts) << record.name;
      ++placed_;
    }
  }

  std::string NameOf(state::NodeId node) {
    return node == state::kNoId ? "" : world_.state().node(node).name();
  }

  // KAI calls a node available for a promise by what is idle there, promised or not.
  static bool IsIdle(const state::PodClass& wanted, const state::NodeInfo& node) {
    for (size_t i = 0; i < wanted.requests.size(); ++i) {
      const auto resource = static_cast<model::ResourceIndex>(i);
      const int64_t each = wanted.requests[resource];
      if (each > 0 && each > node.allocatable[resource] - node.used[resource]) return false;
    }
    return true;
  }

  struct Candidate {
    const state::NodeInfo* node;
    bool ordered, now;
    int64_t score;
  };

  Place Scan(state::PodClassId id, Placer::Mode mode) {
    const state::ClusterState& state = world_.state();
    framework::Context context{state, state.pod_class(id), id, Capacity::kFuture};
    std::vector<Candidate> candidates;
    for (const auto& [name, node_id] : state.nodes_by_name()) {
      const state::NodeInfo& node = state.node(node_id);
      context.capacity = Capacity::kFuture;
      if (!node.exists || !scanning_->Filter(context, node, nullptr)) continue;
      context.capacity = Capacity::kNow;
      const bool ordered = node.kind != state::NodeKind::kReal || !node.usable;
      const bool now =
          !ordered && (mode == Placer::Mode::kPromise ? IsIdle(context.pod_class, node)
                                                      : scanning_->Filter(context, node, nullptr));
      candidates.push_back({&node, ordered, now, scanning_->Score(context, node)});
    }
    context.capacity = Capacity::kNow;
    const bool any_now = std::any_of(candidates.begin(), candidates.end(),
                                     [](const Candidate& candidate) { return candidate.now; });
    if (idle_first_ && any_now) {
      std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.now; });
    }
    std::vector<framework::Kind> kinds;
    for (const Candidate& candidate : candidates) kinds.push_back({candidate.node, 1});
    const std::vector<int64_t> normalized = scanning_->ScoreKinds(context, kinds);
    const Candidate* best = nullptr;
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate& candidate = candidates[i];
      candidate.score += normalized[i] + (candidate.now ? framework::kFitsNowStep : 0);
      if (best != nullptr) {
        if (candidate.ordered && !best->ordered) continue;
        if (candidate.ordered == best->ordered && candidate.score <= best->score) continue;
      }
      best = &candidate;
    }
    if (best == nullptr) return {};
    return {best->node->id, best->now && mode == Placer::Mode::kStart};
  }

  DomainWorld world_;
  const bool idle_first_;
  std::unique_ptr<framework::Framework> framework_ = MakeFramework(idle_first_);
  std::unique_ptr<framework::Framework> scanning_ = MakeFramework(idle_first_);  // never attached
  framework::DomainCounters counters_;
  Placer placer_;
  int64_t placed_ = 0, by_order_ = 0;
};

TEST(DomainOrderTest, ChoosesTheNodeThatAScanChooses) {
  int64_t placed = 0;
  int64_t by_order = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    // Zones as groups, and zones as host names are; scores by more domains than the order takes, or
    // not.
    OrderedWorld world(seed,
                       {seed % 3 == 0   ? 0u
                        : seed % 3 == 1 ? 2u
                                        : 32u,
                        seed % 2 == 0 ? 0u : 1024u},
                       seed % 5 < 2);
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      ASSERT_NO_FATAL_FAILURE(world.Step());
    }
    placed += world.placed();
    by_order += world.by_order();
  }
  EXPECT_GT(placed, 1000);
  EXPECT_EQ(by_order, placed);
}

}  // namespace
}  // namespace fairlead::engine
