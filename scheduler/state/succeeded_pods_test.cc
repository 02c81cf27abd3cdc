// Pods that have succeeded: they count for their group, and hold nothing.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"

namespace fairlead::state {
namespace {

using model::PodPhase;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

class SucceededPodsTest : public ::testing::Test {
 protected:
  ~SucceededPodsTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  static PodBuilder Member(const std::string& name, const std::string& group = "g") {
    PodBuilder pod("ns", name);
    pod.Gpus(1).Scheduler("fairlead");
    if (!group.empty()) pod.Group(group);
    return pod;
  }
  void Run(const std::string& name, const std::string& group = "g") {
    state_.UpsertPod(Member(name, group).On("n"));
  }
  Change Succeed(const std::string& name, const std::string& group = "g") {
    return state_.UpsertPod(Member(name, group).On("n", PodPhase::kSucceeded));
  }
  const Workload& Group(const std::string& name = "g") {
    return state_.workload(state_.FindGroup("ns", name));
  }
  uint32_t Succeeded(const std::string& name = "g") {
    return Group(name).Count(PodStatus::kSucceeded);
  }

  ClusterState state_{OurPods()};
};

TEST_F(SucceededPodsTest, TheGroupCountsItAndItHoldsNothing) {
  state_.UpsertNode(MakeNode("n", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 2));
  Run("a");
  Run("b");
  const Change change = Succeed("a");
  EXPECT_TRUE(change.capacity);
  EXPECT_TRUE(change.workloads);
  EXPECT_EQ(Succeeded(), 1u);
  EXPECT_EQ(Group().Active(), 1u);
  EXPECT_EQ(Group().pods.size(), 1u) << "no walk over the group meets it";
  EXPECT_EQ(state_.node(state_.FindNode("n")).Available()[model::kGpu], 7000);
  EXPECT_FALSE(Succeed("a").Any()) << "the same again";
}

TEST_F(SucceededPodsTest, ItCountsUntilItIsDeleted) {
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 2));
  Run("b");
  Succeed("a");
  EXPECT_FALSE(state_.RemovePod("ns", "a", "another").Any());
  EXPECT_EQ(Succeeded(), 1u);
  EXPECT_TRUE(state_.RemovePod("ns", "a", "").workloads);
  EXPECT_EQ(Succeeded(), 0u);
  EXPECT_EQ(state_.FindPod("ns", "a"), kNoId);
}

TEST_F(SucceededPodsTest, OfALonePodAndOfOneOfAnotherSchedulerNothingIsKept) {
  state_.UpsertNode(MakeNode("n", 8));
  Run("lone", "");
  Succeed("lone", "");
  Run("other");
  for (const PodPhase phase : {PodPhase::kRunning, PodPhase::kSucceeded}) {
    state_.UpsertPod(PodBuilder("ns", "x").Gpus(1).Group("g").Scheduler("x").On("n", phase));
  }
  EXPECT_EQ(state_.pod_count(), 1u);
  EXPECT_EQ(Succeeded(), 0u);
  EXPECT_EQ(state_.workload_count(), 1u);
}

TEST_F(SucceededPodsTest, TheRowOfTheGroupLastsAsLongAsItsPods) {
  Succeed("a");
  EXPECT_EQ(Succeeded(), 1u);
  Run("b");
  state_.RemovePod("ns", "b", "");
  EXPECT_EQ(Succeeded(), 1u);
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 2));
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_EQ(Succeeded(), 1u);
  state_.RemovePod("ns", "a", "");
  EXPECT_EQ(state_.FindGroup("ns", "g"), kNoId);
  EXPECT_EQ(state_.workload_count(), 0u);
  EXPECT_EQ(state_.pod_count(), 0u);
}

TEST_F(SucceededPodsTest, ItMovesWithItsAnnotationAndMayBeAnotherPodByNow) {
  Succeed("a");
  Succeed("a", "h");
  EXPECT_EQ(state_.FindGroup("ns", "g"), kNoId);
  EXPECT_EQ(Succeeded("h"), 1u);
  model::Pod next = Member("a", "h");
  next.meta.uid = "next";
  state_.UpsertPod(next);
  EXPECT_EQ(Succeeded("h"), 0u);
  EXPECT_EQ(Group("h").Count(PodStatus::kPending), 1u);
  // What no API server does: it is pending again.
  Succeed("b", "h");
  state_.UpsertPod(Member("b", "h"));
  EXPECT_EQ(Group("h").Count(PodStatus::kPending), 2u);
  Succeed("b", "");
  EXPECT_EQ(Succeeded("h"), 0u);
}

// A label that names a set that the group does not have, required anti-affinity, a share of a GPU:
// nothing of it is looked at any more.
TEST_F(SucceededPodsTest, WhatItsObjectSaysMakesNoDifference) {
  state_.UpsertNode(MakeNode("n", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 2));
  for (int i = 0; i < 3; ++i) {
    PodBuilder pod("ns", absl::StrCat("s", i));
    pod.Scheduler("fairlead").Group("g").GpuFraction(500);
    pod.Label(model::kSubGroupLabel, "none");
    state_.UpsertPod(pod.On("n"));
    state_.UpsertPod(pod.On("n", PodPhase::kSucceeded));
  }
  EXPECT_EQ(Succeeded(), 3u);
  EXPECT_EQ(state_.node(state_.FindNode("n")).gpu_groups.size(), 0u);
  state_.UpsertNode(MakeNode("n", 4));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "other", 1));
  EXPECT_EQ(Succeeded(), 3u);
}

}  // namespace
}  // namespace fairlead::state
