// Nodes that are emptied so that they can be removed: which pods move, and what becomes of them.
#include <string>

#include "core/machines_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EmptiedNodesTest : public MachinesTest {
 protected:
  void SetUp() override {
    MachinesTest::SetUp();
    options_.hook.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
    options_.engine.reclaim = options_.engine.consolidation = false;  // nothing else evicts
    Restart();
    Begin();
  }
  model::Pod Owned(const std::string& name) {
    model::Pod pod = GpuPod(name);
    model::OwnerReference owner;
    owner.kind = "ReplicaSet";
    owner.name = owner.uid = "owner-of-" + name;
    owner.controller = true;
    pod.meta.owners.push_back(owner);
    return pod;
  }
  // A pod runs on a node that was provisioned for it; then a node with four GPUs appears.
  void RunBesideRoom(const model::Pod& pod) {
    AddPod(pod);
    Play(absl::Minutes(5));
    ASSERT_EQ(bound_.count(pod.meta.name), 1u);
    AddRoom(4);
  }
  void AddRoom(int64_t gpus) {
    model::Node node = MakeNode("static", gpus);
    nodes_["static"] = node;
    Put(node);
  }
  std::string NodeOf(const std::string& pod) { return bound_.contains(pod) ? bound_[pod] : ""; }
};

TEST_F(EmptiedNodesTest, APodMovesToRoomThatIsThereAndItsNodeGoes) {
  RunBesideRoom(Owned("p"));
  Play(options_.hook.unneeded_after - absl::Seconds(10));
  EXPECT_THAT(evicted_, IsEmpty());
  Play(absl::Minutes(2));
  ASSERT_THAT(evicted_, SizeIs(1));
  EXPECT_THAT(evicted_.front().message, HasSubstr("its pods have room on other nodes"));
  EXPECT_EQ(NodeOf("pi"), "static");
  EXPECT_EQ(terminated_, 1);
  Play(absl::Hours(2));
  EXPECT_THAT(evicted_, SizeIs(1)) << "and that is all";
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(EmptiedNodesTest, WithoutThePolicyNothingMoves) {
  options_.hook.disruption.consolidation.reset();
  Restart();
  Begin();
  RunBesideRoom(Owned("p"));
  Play(absl::Hours(2));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(terminated_, 0);
}

TEST_F(EmptiedNodesTest, WhatMayNotBeMovedStays) {
  struct Case {
    const char* why;
    std::function<void(model::Pod&)> change;
  };
  const Case cases[] = {
      {"no controller", [](model::Pod& pod) { pod.meta.owners.clear(); }},
      {"annotation of Karpenter",
       [](model::Pod& pod) { pod.meta.annotations.Set("karpenter.sh/do-not-disrupt", "true"); }},
      {"annotation of cluster-autoscaler",
       [](model::Pod& pod) {
         pod.meta.annotations.Set("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
       }},
      {"more than is free", [](model::Pod& pod) { model::Set(pod.spec.requests, "cpu", 3900); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    requests_.clear();
    nodes_.clear();
    bound_.clear();
    pods_.clear();
    machines_.clear();
    Restart();
    Begin();
    model::Pod pod = Owned("p");
    c.change(pod);
    AddPod(pod);
    Play(absl::Minutes(5));
    ASSERT_EQ(bound_.count("p"), 1u);
    model::Node small = MakeNode("static", 4);
    model::Set(small.allocatable, "cpu", 3000);
    Put(small);
    Play(absl::Minutes(30));
    EXPECT_THAT(evicted_, IsEmpty());
  }
}

TEST_F(EmptiedNodesTest, WorkThatWouldBeginAnewWeighs) {
  model::Pod job = Owned("p");
  job.runs_to_end = true;
  AddPod(job);
  Play(absl::Hours(3));
  AddRoom(4);
  Play(absl::Hours(1));
  EXPECT_THAT(evicted_, IsEmpty()) << "three hours of work for one hour of a node";
}

TEST_F(EmptiedNodesTest, AYoungJobMoves) {
  model::Pod job = Owned("p");
  job.runs_to_end = true;
  RunBesideRoom(job);
  Play(absl::Minutes(8));
  EXPECT_THAT(evicted_, SizeIs(1));
}

// Another workload of its queue would start in its stead.
TEST_F(EmptiedNodesTest, NothingMovesWhileItsQueueHasMoreToRun) {
  Put(MakeQueue("research", "", 1, 1));
  RunBesideRoom(Owned("p"));
  AddPod(Owned("q"));  // waits at the limit
  Play(absl::Minutes(30));
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_THAT(evicted_, IsEmpty());
  EndPod("q");
  Play(absl::Minutes(8));
  EXPECT_THAT(evicted_, SizeIs(1));
}

TEST_F(EmptiedNodesTest, AGangKeepsItsMinimum) {
  Put(MakeGroup("ns", "g", "research", 2));
  for (const char* name : {"g0", "g1"}) {
    model::Pod pod = Owned(name);
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "g");
    AddPod(pod);
  }
  Play(absl::Minutes(5));
  ASSERT_THAT(bound_, SizeIs(2));
  AddRoom(1);
  Play(absl::Minutes(30));
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(EmptiedNodesTest, WhatABudgetKeepsIsGivenUpAndNothingIsLost) {
  RunBesideRoom(Owned("p"));
  refuse_evictions_ = true;
  Play(absl::Minutes(20));
  EXPECT_EQ(NodeOf("p"), nodes_.begin()->first);
  EXPECT_GT(eviction_attempts_, 1);
  EXPECT_LT(eviction_attempts_, 30);
  EXPECT_EQ(terminated_, 0);
  const int attempts = eviction_attempts_;
  Play(absl::Minutes(10));
  EXPECT_EQ(eviction_attempts_, attempts) << "not tried for half an hour";
  const model::Node& node = nodes_.at(NodeOf("p"));
  EXPECT_THAT(node.taints, IsEmpty());
  refuse_evictions_ = false;
  Play(absl::Minutes(30));
  EXPECT_EQ(NodeOf("pi"), "static");
  EXPECT_EQ(terminated_, 1);
}

// A pod that a foreign scheduler binds there before the fence stops it.
TEST_F(EmptiedNodesTest, ANodeThatTheCloudTakesBackIsReplacedAheadOfTime) {
  options_.hook.disruption.consolidation.reset();
  Restart();
  Begin();
  model::Pod job = Owned("p");
  job.runs_to_end = true;
  AddPod(job);
  Play(absl::Hours(2));
  const std::string first = NodeOf("p");
  ASSERT_FALSE(first.empty());
  model::Node& node = nodes_.at(first);
  node.taints.push_back(
      {"aws-node-termination-handler/spot-itn", "1", model::TaintEffect::kNoSchedule});
  Put(node);
  const absl::Time noticed = now_;
  while (created_ == 1 && now_ < noticed + absl::Minutes(1)) Play(absl::Seconds(5));
  EXPECT_EQ(created_, 2) << "another node is ordered before this one ends";
  ASSERT_THAT(evicted_, SizeIs(1));
  EXPECT_THAT(evicted_.front().message, HasSubstr("takes the machine back"));
  Play(absl::Minutes(5));
  EXPECT_NE(NodeOf("pi"), "");
  EXPECT_NE(NodeOf("pi"), first);
  EXPECT_EQ(terminated_, 1);
}

}  // namespace
}  // namespace fairlead::core::testing
