// Promises of nodes that are on order stay with the pods that have them.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PromiseMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* queue : {"a", "b", "c", "d"}) cluster_.Queue(queue, 100);
  }
  // A pod of 8 GPUs.
  void Pod(absl::string_view name, absl::string_view queue, int64_t created) {
    cluster_.Pod(PodBuilder("ns", name).Gpus(8).Queue(queue).Created(created));
  }
  void Order(absl::string_view node, std::vector<std::string> ordered_for = {}) {
    cluster_.state().UpsertOrderedNode(MakeNode(node, 8), node, ordered_for);
  }
  std::vector<std::string> Promises() {
    cluster_.Run(++now_);
    return cluster_.Promised();
  }

  int64_t now_ = 100;
  testing::Cluster cluster_;
};

TEST_F(PromiseMemoryTest, ANodeWhoseNameComesFirstMovesNoPod) {
  Pod("p", "a", 1);
  Pod("q", "b", 2);
  Order("n5");
  Order("n6");
  EXPECT_THAT(Promises(), ElementsAre("p>n5", "q>n6"));
  Pod("r", "c", 3);
  Order("n1");
  EXPECT_THAT(Promises(), ElementsAre("p>n5", "q>n6", "r>n1"));
}

TEST_F(PromiseMemoryTest, ANewPodGoesWhereItsOwnNodeWasOrdered) {
  Pod("p", "b", 1);
  Order("n5", {"ns/p"});
  EXPECT_THAT(Promises(), ElementsAre("p>n5"));
  // Served before p, because it is of an equal queue with a smaller name.
  Pod("r", "a", 2);
  Order("n7", {"ns/r"});
  EXPECT_THAT(Promises(), ElementsAre("p>n5", "r>n7"));
}

TEST_F(PromiseMemoryTest, AGangTakesItsNodesOneAfterTheOther) {
  Pod("q", "b", 1);
  Order("n5", {"ns/q"});
  EXPECT_THAT(Promises(), ElementsAre("q>n5"));
  model::PodGroup group;
  group.meta.ns = "ns";
  group.meta.name = "g";
  group.queue = "a";
  group.min_member = 2;
  cluster_.Group(group);
  cluster_.Pod(PodBuilder("ns", "g-0").Gpus(8).Group("g").Queue("a"));
  cluster_.Pod(PodBuilder("ns", "g-1").Gpus(8).Group("g").Queue("a"));
  Order("n6", {"ns/g"});
  Order("n7", {"ns/g"});
  EXPECT_THAT(Promises(), ElementsAre("g-0>n6", "g-1>n7", "q>n5"));
  EXPECT_THAT(Promises(), ElementsAre("g-0>n6", "g-1>n7", "q>n5"));
}

TEST_F(PromiseMemoryTest, ItIsAWishOnly) {
  Pod("p", "a", 1);
  Order("n5", {"ns/p"});
  Order("n6");
  EXPECT_THAT(Promises(), ElementsAre("p>n5"));
  cluster_.state().RemoveOrderedNode("n5");
  EXPECT_THAT(Promises(), ElementsAre("p>n6")) << "what is gone is not waited for";
  cluster_.Node("real", 8);
  EXPECT_THAT(Promises(), IsEmpty());
  EXPECT_THAT(cluster_.Bound(), ElementsAre("p>real")) << "a pod that can start starts";
}

TEST_F(PromiseMemoryTest, TheRoomOfAVictimIsWaitedForRatherThanANodeOnOrder) {
  Pod("p", "a", 1);
  Order("n5", {"ns/p"});
  EXPECT_THAT(Promises(), ElementsAre("p>n5"));
  cluster_.Node("real", 8);
  cluster_.Pod(PodBuilder("ns", "going").Gpus(8).Queue("b").On("real").Deleting());
  EXPECT_THAT(Promises(), ElementsAre("p>real"));
}

// Arrivals one by one, each with a node of its own whose name falls anywhere among the others'.
TEST_F(PromiseMemoryTest, AnArrivalMovesNoPodThatWaits) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    testing::Cluster cluster;
    for (const char* queue : {"a", "b", "c", "d"}) cluster.Queue(queue, 1000);
    std::vector<int> names(100);
    for (int i = 0; i < 100; ++i) names[static_cast<size_t>(i)] = i;
    std::shuffle(names.begin(), names.end(), random);
    std::vector<std::string> before;
    for (size_t i = 0; i < 40; ++i) {
      const std::string pod = absl::StrCat("p", i), node = absl::StrCat("n", names[i]);
      const std::string queue(1, static_cast<char>('a' + random() % 4));
      cluster.Pod(PodBuilder("ns", pod).Gpus(8).Queue(queue).Created(static_cast<int64_t>(i)));
      cluster.state().UpsertOrderedNode(MakeNode(node, 8), node, {absl::StrCat("ns/", pod)});
      cluster.Run(1000 + static_cast<int64_t>(i));
      before.push_back(absl::StrCat(pod, ">", node));
      std::sort(before.begin(), before.end());
      ASSERT_EQ(cluster.Promised(), before);
    }
  }
}

// A limit of 2 GPUs: one runs, `big` fits on no present node and was promised one on order, and
// `small` could start.
class LateNodesTest : public ::testing::Test {
 protected:
  LateNodesTest() {
    cluster_.Queue("q", 2, 2);
    cluster_.state().UpsertNode(MakeNode("n1", 4, 4));
    cluster_.Pod(testing::Job("runs", "q", 1, 1).On("n1"));
    cluster_.Pod(testing::Job("big", "q", 1, 2).Cpu(8000));
    cluster_.state().UpsertOrderedNode(MakeNode("o1", 4, 16), "o1", {"ns/big"});
    cluster_.engine().SetLateNodes([this](const state::NodeInfo& node) {
      EXPECT_EQ(node.name(), "o1");
      return late_;
    });
  }
  void AddSmall() { cluster_.Pod(testing::Job("small", "q", 1, 3)); }

  bool late_ = false;
  testing::Cluster cluster_;
};

TEST_F(LateNodesTest, APromiseOnANodeOnItsWayCountsAgainstTheLimit) {
  AddSmall();
  cluster_.Run(100);
  EXPECT_THAT(cluster_.Promised(), ElementsAre("big>o1"));
  EXPECT_THAT(cluster_.Bound(), IsEmpty());
  EXPECT_EQ(cluster_.CodeOf("small"), verdict::Code::kQueueLimitReached);
}

TEST_F(LateNodesTest, APromiseOnALateNodeHoldsNothingThatCanStart) {
  AddSmall();
  late_ = true;
  cluster_.Run(100);
  EXPECT_THAT(cluster_.Bound(), ElementsAre("small>n1"));
  EXPECT_THAT(cluster_.Promised(), IsEmpty());
  EXPECT_EQ(cluster_.CodeOf("big"), verdict::Code::kQueueLimitReached);
}

TEST_F(LateNodesTest, APromiseOnALateNodeStaysIfNothingElseCanStart) {
  late_ = true;
  cluster_.Run(100);
  EXPECT_THAT(cluster_.Promised(), ElementsAre("big>o1"));
  EXPECT_EQ(cluster_.CodeOf("big"), verdict::Code::kNodesRequested);
}

// Its first step is promised the late node, and the next one goes with it.
TEST_F(LateNodesTest, TheStepsOfAWorkloadAreTakenBackTogether) {
  cluster_.Queue("q", 3, 3);
  cluster_.state().RemovePod("ns", "big", "uid-ns-big");
  cluster_.Group(testing::PreemptibleGroup("group", "q", 1, 2));
  cluster_.Pod(testing::Member("m1", "group").Cpu(8000));
  cluster_.Pod(testing::Member("m2", "group").Cpu(8000));
  cluster_.Run(100);
  EXPECT_THAT(cluster_.Promised(), ElementsAre("m1>o1", "m2>o1"));
  AddSmall();
  cluster_.Pod(testing::Job("small-2", "q", 1, 4));
  late_ = true;
  cluster_.Run(101);
  EXPECT_THAT(cluster_.Bound(), ElementsAre("small-2>n1", "small>n1"));
  EXPECT_THAT(cluster_.Promised(), IsEmpty());
  EXPECT_EQ(cluster_.CodeOf("group"), verdict::Code::kQueueLimitReached);
}

// A gang that waits for a late node keeps no capacity of present nodes from what can start.
TEST_F(LateNodesTest, AGangThatWaitsForALateNodeHoldsNoPresentCapacity) {
  cluster_.Queue("q", 8, 8);
  cluster_.state().RemovePod("ns", "big", "uid-ns-big");
  cluster_.Group(testing::PreemptibleGroup("gang", "q", 2, 2));
  cluster_.Pod(testing::Member("m1", "gang").Cpu(3000));
  cluster_.Pod(testing::Member("m2", "gang").Cpu(8000));
  cluster_.Run(100);
  EXPECT_THAT(cluster_.Promised(), ElementsAre("m1>n1", "m2>o1"));
  late_ = true;
  cluster_.Run(101);
  EXPECT_THAT(cluster_.Promised(), ElementsAre("m1>n1", "m2>o1"));
  AddSmall();
  cluster_.Run(102);
  EXPECT_THAT(cluster_.Bound(), ElementsAre("small>n1"));
  EXPECT_THAT(cluster_.Promised(), ElementsAre("m1>o1", "m2>o1"));
}

}  // namespace
}  // namespace fairlead::engine
