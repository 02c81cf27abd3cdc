// Which GPUs shares get, over many steps on random nodes.
#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/gpu_testing.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::PodBuilder;
using testing::GpuNode;
using testing::OurPods;

// What PickGpus gives out never overloads a GPU, now or once everything is released; what is said
// to fit now needs nothing that is still held. Sums are taken from the pods, not from the groups.
class Load {
 public:
  explicit Load(const ClusterState& state) : state_(state) {}
  // "" if every GPU of the node is within its memory, and no more GPUs are in use than there are.
  [[nodiscard]] std::string Check(const NodeInfo& node, bool count_releasing, bool count_promised) {
    std::map<std::string, int64_t> mib;
    int64_t whole = 0;
    for (PodId id : node.pods) {
      const PodRecord& pod = state_.pod(id);
      if (pod.status == PodStatus::kReleasing && !count_releasing) continue;
      if (pod.status == PodStatus::kPipelined && !count_promised) continue;
      if (state_.class_of(id).reservation) {
        // It goes when no pod shares its GPU any more.
        if (count_releasing) mib[pod.gpu_groups.at(0)] += 0;
        continue;
      }
      const model::PodSpec& spec = *state_.class_of(id).spec;
      whole += model::Get(spec.requests, model::kGpuName) / 1000;
      const int64_t each = spec.gpu_share.memory_mib > 0
                               ? spec.gpu_share.memory_mib
                               : spec.gpu_share.fraction_milli * node.gpu_memory_mib / 1000;
      for (const std::string& group : pod.gpu_groups) mib[group] += each;
    }
    for (const auto& [group, sum] : mib) {
      if (sum > node.gpu_memory_mib) return absl::StrCat("GPU ", group, " holds ", sum, " MiB");
    }
    const int64_t in_use = whole + static_cast<int64_t>(mib.size());
    if (in_use * 1000 > node.allocatable[model::kGpu]) return absl::StrCat(in_use, " GPUs in use");
    return "";
  }

 private:
  const ClusterState& state_;
};

// One node of up to four GPUs of 200 MiB each.
struct Trial {
  explicit Trial(uint64_t seed) : random(seed), state(OurPods()), load(state) {
    state.UpsertNode(GpuNode("n", static_cast<int64_t>(1 + random() % 4), "200"));
    node = state.FindNode("n");
  }

  std::mt19937_64 random;
  ClusterState state;
  NodeId node = kNoId;
  Load load;
};

TEST(GpuPickProperty, NoGpuIsEverOverloaded) {
  int64_t placed = 0;
  int64_t waited = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial trial(seed);
    auto& [random, state, node, load] = trial;
    Transaction txn(state);
    constexpr uint64_t kPods = 20;
    for (uint64_t i = 0; i < kPods; ++i) {
      PodBuilder pod("ns", "p" + std::to_string(i));
      const auto devices = static_cast<int64_t>(1 + random() % 2);
      switch (random() % 4) {
        case 0:
          pod.Gpus(1);
          break;
        case 1:
          pod.GpuMemory(static_cast<int64_t>(1 + random() % 200), devices);
          break;
        default:
          pod.GpuFraction(static_cast<int64_t>(5 + random() % 995), devices);
          break;
      }
      state.UpsertPod(pod);
    }
    for (int step = 0; step < 120; ++step) {
      const PodId id = state.FindPod("ns", "p" + std::to_string(random() % kPods));
      const PodClass& pod_class = state.class_of(id);
      const PodStatus status = state.pod(id).status;
      if (status == PodStatus::kBinding) {
        if (random() % 3 == 0) txn.Evict(id);
        continue;
      }
      if (status != PodStatus::kPending) continue;
      const bool now = random() % 2 == 0;
      const GpuCapacity room = now ? GpuCapacity::kNow : GpuCapacity::kFuture;
      const NodeInfo& info = state.node(node);
      if (!pod_class.requests.FitsIn(now ? info.Available() : info.Future())) continue;
      const auto pick = PickGpus(info, pod_class, state.pod(id).uid, room,
                                 random() % 2 == 0 ? GpuOrder::kPack : GpuOrder::kSpread);
      ASSERT_EQ(pick.has_value(), FitsGpus(info, pod_class, room));
      if (!pick.has_value()) continue;
      ++placed;
      const bool idle =
          pod_class.requests.FitsIn(info.Available()) && !MustWait(info, pod_class, *pick);
      ASSERT_TRUE(idle || !now);
      if (idle) {
        txn.Allocate(id, node, *pick);
      } else {
        ++waited;
        txn.Pipeline(id, node, *pick);
      }
      ASSERT_EQ(load.Check(state.node(node), true, false), "");  // as things stand
      ASSERT_EQ(load.Check(state.node(node), false, true), "");  // when all promises are kept
      ASSERT_EQ(state.CheckConsistency(), "");
    }
  }
  EXPECT_GT(placed, 500);
  EXPECT_GT(waited, 50);
}

// The same with reservation pods that come and go: their GPUs stay held for a while, and can be
// shared at once unless they are promised away.
TEST(GpuPickProperty, GpusThatAreHeldForNoPodAreGivenOnce) {
  int64_t kept = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial trial(seed);
    auto& [random, state, node, load] = trial;
    const auto reservation = [](const std::string& group) {
      PodBuilder pod(model::kReservationNamespace, "r-" + group);
      return pod.Gpus(1).Cpu(0).Scheduler("other").Label(model::kGpuGroupLabel, group).On("n");
    };
    for (int step = 0; step < 200; ++step) {
      const std::string name = "p" + std::to_string(random() % 20);
      const std::vector<GpuGroup>& groups = state.node(node).gpu_groups;
      const auto group =
          groups.empty() ? GpuGroup{} : groups[static_cast<size_t>(random() % groups.size())];
      if (group.active > 0 && random() % 2 == 0) state.UpsertPod(reservation(group.id));
      if (group.reservations > 0 && random() % 20 == 0) {
        state.RemovePod(model::kReservationNamespace, "r-" + group.id, "");
      }
      if (random() % 3 == 0) {
        state.RemovePod("ns", name, "");
        continue;
      }
      PodBuilder pod("ns", name);
      random() % 4 == 0 ? pod.Gpus(1)
                        : pod.GpuFraction(static_cast<int64_t>(5 + random() % 900),
                                          static_cast<int64_t>(1 + random() % 2));
      if (state.FindPod("ns", name) != kNoId) continue;
      state.UpsertPod(pod);
      const PodId id = state.FindPod("ns", name);
      const PodClass& pod_class = state.class_of(id);
      const NodeInfo& info = state.node(node);
      const bool now = FitsGpus(info, pod_class, GpuCapacity::kNow);
      ASSERT_TRUE(!now || FitsGpus(info, pod_class, GpuCapacity::kFuture));
      if (!pod_class.requests.FitsIn(info.Future())) continue;
      const auto pick = PickGpus(info, pod_class, state.pod(id).uid, GpuCapacity::kFuture,
                                 random() % 2 == 0 ? GpuOrder::kPack : GpuOrder::kSpread);
      ASSERT_EQ(pick.has_value(), FitsGpus(info, pod_class, GpuCapacity::kFuture));
      if (!pick.has_value()) continue;
      for (const GpuGroup& each : info.gpu_groups) {
        if (each.Kept() && std::count(pick->begin(), pick->end(), each.id) > 0) ++kept;
      }
      Transaction txn(state);
      if (pod_class.requests.FitsIn(info.Available()) && !MustWait(info, pod_class, *pick)) {
        txn.Allocate(id, node, *pick);
      } else {
        txn.Pipeline(id, node, *pick);
      }
      txn.Commit();
      ASSERT_EQ(load.Check(state.node(node), true, false), "");
      ASSERT_EQ(load.Check(state.node(node), false, true), "");
      ASSERT_EQ(state.CheckConsistency(), "");
    }
  }
  EXPECT_GT(kept, 30);
}

}  // namespace
}  // namespace fairlead::state
