// Undo restores the exact state, at every mark, under random operations; and so does destruction.
#include <random>

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

class Ledger final : public StateSubscriber {
 public:
  explicit Ledger(const ClusterState& state) : state_(state) {}
  void OnChange(const StateChange& change) override {
    if (change.kind == StateChange::Kind::kPodCharged) ++counts_[KeyOf(change)];
    if (change.kind == StateChange::Kind::kPodReleased) --counts_[KeyOf(change)];
    // As a subscriber does that counts the pods of nodes by their status.
    if (change.kind == StateChange::Kind::kPodMoved) {
      --counts_[At(change.from_status, change.from_node)];
      ++counts_[At(change.to_status, change.to_node)];
    }
  }
  [[nodiscard]] std::string Text() const {
    std::string out;
    for (const auto& [name, count] : counts_) {
      if (count != 0) out += name + "=" + std::to_string(count) + " ";
    }
    return out;
  }

 private:
  [[nodiscard]] std::string KeyOf(const StateChange& change) const {
    return state_.workload(change.workload).queue + state_.pod(change.pod).name;
  }
  static std::string At(PodStatus status, NodeId node) {
    return std::string(PodStatusName(status)) + "@" + std::to_string(node);
  }
  const ClusterState& state_;
  std::map<std::string, int> counts_;
};

// A legal pick, not always a sensible one: groups that exist or are new, fitting or not. The state
// has to account for whatever it is told.
GpuPick RandomPick(const ClusterState& state, PodId pod, NodeId node, std::mt19937_64& random) {
  const PodClass& pod_class = state.class_of(pod);
  if (!pod_class.spec->gpu_share.IsSet()) return {};
  if (random() % 2 == 0) {
    auto pick = PickGpus(state.node(node), pod_class, state.pod(pod).uid, GpuCapacity::kFuture,
                         random() % 2 == 0 ? GpuOrder::kPack : GpuOrder::kSpread);
    if (pick.has_value()) return *pick;
  }
  GpuPick pick;
  const uint64_t first = random() % 4;
  for (int64_t i = 0; i < pod_class.spec->gpu_share.devices; ++i) {
    pick.push_back("g" + std::to_string(first + static_cast<uint64_t>(i)));
  }
  return pick;
}

// One random legal operation.
void RandomOperation(ClusterState& state, Transaction& txn, std::mt19937_64& random, int pods) {
  const PodId pod = state.FindPod("ns", "p" + std::to_string(random() % pods));
  const NodeId node = state.FindNode("n" + std::to_string(random() % 4));
  switch (state.pod(pod).status) {
    case PodStatus::kPending:
      if (random() % 2 == 0) {
        txn.Allocate(pod, node, RandomPick(state, pod, node, random));
      } else {
        txn.Pipeline(pod, node, RandomPick(state, pod, node, random));
      }
      break;
    case PodStatus::kBinding:
    case PodStatus::kBound:
    case PodStatus::kRunning:
      txn.Evict(pod);
      break;
    case PodStatus::kReleasing:
      txn.Pipeline(pod, node, RandomPick(state, pod, node, random));
      break;
    default:
      break;
  }
}

TEST(TransactionProperty, RollbackRestoresTheExactState) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    StateOptions options = OurPods();
    options.sum_scoring_requests = seed % 2 == 0;
    ClusterState state(options);
    Ledger ledger(state);
    state.Subscribe(&ledger);
    for (int i = 0; i < 4; ++i) {
      model::Node node = MakeNode("n" + std::to_string(i), 8);
      if (i > 0) node.meta.labels.Set(model::kGpuMemoryLabel, std::to_string(100 * i));
      state.UpsertNode(node);
    }
    constexpr int kPods = 12;
    for (int i = 0; i < kPods; ++i) {
      PodBuilder pod("ns", "p" + std::to_string(i));
      const auto devices = static_cast<int64_t>(1 + random() % 2);
      switch (random() % 3) {
        case 0:
          pod.Gpus(static_cast<int64_t>(random() % 4));
          break;
        case 1:
          pod.GpuFraction(static_cast<int64_t>(1 + random() % 999), devices);
          break;
        case 2:
          pod.GpuMemory(static_cast<int64_t>(1 + random() % 150), devices);
          break;
      }
      if (random() % 2 == 0) pod.Label(model::kGpuGroupLabel, "g" + std::to_string(random() % 3));
      pod.Queue(i % 2 == 0 ? "a" : "b");
      if (random() % 2 == 0) pod.On("n" + std::to_string(random() % 4));
      model::Pod built = pod;
      built.spec.scoring_requests = {static_cast<int64_t>(random() % 1000),
                                     static_cast<int64_t>(random() % 1000)};
      state.UpsertPod(built);
    }
    const std::string before = state.Dump() + ledger.Text();
    {
      Transaction txn(state);
      std::vector<std::pair<Transaction::Checkpoint, std::string>> marks;
      for (int step = 0; step < 60; ++step) {
        if (random() % 4 == 0) marks.emplace_back(txn.Mark(), state.Dump() + ledger.Text());
        RandomOperation(state, txn, random, kPods);
        ASSERT_EQ(state.CheckConsistency(), "");
        if (!marks.empty() && random() % 6 == 0) {
          const size_t to = random() % marks.size();
          txn.RollbackTo(marks[to].first);
          ASSERT_EQ(state.Dump() + ledger.Text(), marks[to].second);
          marks.resize(to);
        }
      }
    }
    ASSERT_EQ(state.Dump() + ledger.Text(), before);
  }
}

TEST(TransactionTest, CommitKeepsAndReportsInOrder) {
  ClusterState state(OurPods());
  state.UpsertNode(MakeNode("n0", 8));
  state.UpsertPod(PodBuilder("ns", "a").Gpus(1));
  state.UpsertPod(PodBuilder("ns", "b").Gpus(1).On("n0"));
  const PodId a = state.FindPod("ns", "a");
  const PodId b = state.FindPod("ns", "b");
  Transaction txn(state);
  txn.Evict(b);
  const auto mark = txn.Mark();
  txn.Pipeline(a, state.FindNode("n0"));
  EXPECT_EQ(txn.OperationsSince(mark).size(), 1u);
  const auto operations = txn.Commit();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].kind, Transaction::OperationKind::kEvict);
  EXPECT_EQ(operations[1].kind, Transaction::OperationKind::kPipeline);
  EXPECT_EQ(state.pod(a).status, PodStatus::kPipelined);
  ReleasePromise(state, a);
  EXPECT_EQ(state.pod(a).status, PodStatus::kPending);
  EXPECT_EQ(state.CheckConsistency(), "");
}

TEST(TransactionDeathTest, IllegalMovesAreBugs) {
  ClusterState state(OurPods());
  state.UpsertNode(MakeNode("n0", 8));
  state.UpsertPod(PodBuilder("ns", "a").On("n0"));
  Transaction txn(state);
  EXPECT_DEATH(txn.Allocate(state.FindPod("ns", "a"), 0), "allocating pod a that is Running");
}

}  // namespace
}  // namespace fairlead::state
