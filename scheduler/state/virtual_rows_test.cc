// What does not exist leaves no trace: rows, totals, names, ids and classes are as they were.
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

// Entries about nodes that a subscriber does not leave out as virtual.
class NodeEntries final : public StateSubscriber {
 public:
  explicit NodeEntries(ClusterState& state) : state_(state) { state_.Subscribe(this); }
  ~NodeEntries() override { state_.Unsubscribe(this); }
  void OnChange(const StateChange& change) override {
    if (state_.node(change.to_node).kind != NodeKind::kVirtual) ++told;
  }
  [[nodiscard]] ChangeKinds Kinds() const override {
    return {StateChange::Kind::kNodeUsage, StateChange::Kind::kNodeObject};
  }
  int told = 0;

 private:
  ClusterState& state_;
};

TEST(VirtualRowsTest, NodeAndPodAreThereUntilTheyAreRolledBack) {
  ClusterState state(OurPods());
  state.UpsertNode(MakeNode("zz", 8));
  state.UpsertPod(PodBuilder("ns", "real").Gpus(2).On("zz"));
  const std::string before = state.Dump();
  NodeEntries real(state);
  {
    Transaction txn(state);
    const NodeId node = txn.AddNode(MakeNode("v", 4));
    EXPECT_EQ(state.node(node).kind, NodeKind::kVirtual);
    EXPECT_EQ(state.node_count(), 2u);
    EXPECT_EQ(state.nodes_by_name().rbegin()->second, node);
    EXPECT_EQ(state.total_for_queues()[model::kGpu], 8000);
    const PodClassId wanted = txn.AddClass(PodBuilder("ns", "x").Gpus(3).Build().spec);
    const PodId pod = txn.AddPod(wanted);
    txn.Pipeline(pod, node);
    EXPECT_EQ(state.node(node).Future()[model::kGpu], 1000);
    const PodId on_real = txn.AddPod(wanted);
    txn.Pipeline(on_real, state.FindNode("zz"));
    EXPECT_EQ(state.node(state.FindNode("zz")).Future()[model::kGpu], 3000);
    EXPECT_EQ(state.total_for_queues()[model::kGpu], 8000);
    EXPECT_EQ(state.CheckConsistency(), "");
    txn.Remove(state.FindPod("ns", "real"));
    EXPECT_EQ(state.node(state.FindNode("zz")).Future()[model::kGpu], 5000);
  }
  EXPECT_EQ(state.Dump(), before);
  EXPECT_EQ(state.CheckConsistency(), "");
  // One entry for each time that something on the real node changed.
  EXPECT_EQ(real.told, 4);
}

TEST(VirtualRowsTest, IdsAndNamesAreDealtAsIfNothingHadBeenTried) {
  const auto world = [](bool tries) {
    ClusterState state(OurPods());
    state.UpsertNode(MakeNode("a", 1));
    if (tries) {
      Transaction txn(state);
      const PodClassId wanted = txn.AddClass(PodBuilder("ns", "x").Gpus(1).Build().spec);
      for (int i = 0; i < 3; ++i) txn.Pipeline(txn.AddPod(wanted), txn.AddNode(MakeNode("v", 4)));
    }
    for (const char* name : {"b", "c", "~00000000"}) state.UpsertNode(MakeNode(name, 1));
    if (tries) {
      Transaction txn(state);
      txn.AddNode(MakeNode("v", 4));  // a name of its own, whatever real nodes are called
      EXPECT_EQ(state.node_count(), 5u);
    }
    for (const char* name : {"p", "q"}) state.UpsertPod(PodBuilder("ns", name).Gpus(1).On("b"));
    return std::to_string(state.FindNode("c")) + state.Dump();
  };
  EXPECT_EQ(world(true), world(false));
}

TEST(VirtualRowsTest, WhatPodsCountElsewhereDoesNotDependOnIt) {
  ClusterState state(OurPods());
  model::Node node = MakeNode("a", 2);
  node.meta.labels.Set(model::kGpuMemoryLabel, "40000");
  state.UpsertNode(node);
  state.UpsertPod(PodBuilder("ns", "p").GpuMemory(10000));
  const PodId pod = state.FindPod("ns", "p");
  const int64_t charge = state.GpuChargeOf(state.pod(pod));
  Transaction txn(state);
  model::Node small = MakeNode("v", 2);
  small.meta.labels.Set(model::kGpuMemoryLabel, "20000");
  const NodeId added = txn.AddNode(small);
  EXPECT_EQ(state.node(added).gpu_memory_mib, 20000);
  EXPECT_EQ(state.GpuChargeOf(state.pod(pod)), charge);
}

TEST(VirtualRowsDeathTest, WhatDoesNotExistIsNotCommitted) {
  ClusterState state(OurPods());
  Transaction txn(state);
  txn.AddNode(MakeNode("v", 4));
  EXPECT_DEATH(txn.Commit(), "committing what does not exist");
}

// Nodes and pods that come and go at random, among moves of real ones.
TEST(VirtualRowsProperty, RollbackRestoresTheExactState) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ClusterState state(OurPods());
    const auto node_like = [&] {
      model::Node node =
          MakeNode("n" + std::to_string(random() % 5), static_cast<int64_t>(1 + random() % 8));
      if (random() % 2 == 0) node.meta.labels.Set(model::kGpuMemoryLabel, "40000");
      if (random() % 4 == 0) {
        node.taints.push_back({"soft", "", model::TaintEffect::kPreferNoSchedule});
      }
      return node;
    };
    const auto pod_like = [&](const std::string& name) {
      PodBuilder pod("ns", name);
      switch (random() % 3) {
        case 0:
          pod.Gpus(static_cast<int64_t>(random() % 4));
          break;
        case 1:
          pod.GpuFraction(static_cast<int64_t>(1 + random() % 999));
          break;
        case 2:
          pod.GpuMemory(static_cast<int64_t>(1 + random() % 30000));
          break;
      }
      return pod;
    };
    for (int i = 0; i < 4; ++i) state.UpsertNode(node_like());
    for (int i = 0; i < 10; ++i) {
      PodBuilder pod = pod_like("p" + std::to_string(i));
      if (random() % 2 == 0) pod.On("n" + std::to_string(random() % 5));
      if (random() % 3 == 0) pod.Scheduler("other");
      state.UpsertPod(pod);
    }
    const std::string before = state.Dump();
    {
      Transaction txn(state);
      std::vector<std::pair<Transaction::Checkpoint, std::string>> marks;
      std::vector<PodClassId> classes;
      for (int step = 0; step < 60; ++step) {
        if (random() % 4 == 0) marks.emplace_back(txn.Mark(), state.Dump());
        std::vector<PodId> waiting, placed;
        std::vector<NodeId> nodes;
        state.ForEachPod([&](const PodRecord& pod) {
          if (pod.node != kNoId) placed.push_back(pod.id);
          if (pod.node == kNoId && pod.status == PodStatus::kPending) waiting.push_back(pod.id);
        });
        for (const auto& [name, id] : state.nodes_by_name()) nodes.push_back(id);
        switch (random() % 5) {
          case 0:
            txn.AddNode(node_like());
            break;
          case 1:
            txn.AddPod(txn.AddClass(pod_like("x").Build().spec));
            break;
          case 2:
            if (!placed.empty()) txn.Remove(placed[random() % placed.size()]);
            break;
          default:
            if (waiting.empty() || nodes.empty()) break;
            const PodId pod = waiting[random() % waiting.size()];
            const NodeId node = nodes[random() % nodes.size()];
            const auto pick = PickGpus(state.node(node), state.class_of(pod), state.pod(pod).uid,
                                       GpuCapacity::kFuture, GpuOrder::kPack);
            if (pick.has_value()) txn.Pipeline(pod, node, *pick);
        }
        ASSERT_EQ(state.CheckConsistency(), "");
        if (!marks.empty() && random() % 6 == 0) {
          const size_t to = random() % marks.size();
          txn.RollbackTo(marks[to].first);
          ASSERT_EQ(state.Dump(), marks[to].second);
          marks.resize(to);
        }
      }
    }
    ASSERT_EQ(state.Dump(), before);
    ASSERT_EQ(state.CheckConsistency(), "");
  }
}

}  // namespace
}  // namespace fairlead::state
