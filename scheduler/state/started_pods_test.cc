// Whether what runs is preemptible while the object of its PodGroup does not exist.
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::Preemptibility;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

class StartedPodsTest : public ::testing::Test {
 protected:
  StartedPodsTest() { state_.UpsertNode(MakeNode("n1", 8)); }
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  static PodBuilder Member(absl::string_view name) {
    return PodBuilder("ns", name).Group("g").Queue("q").Gpus(1);
  }
  static PodBuilder StartedAs(absl::string_view name, absl::string_view word) {
    return Member(name).On("n1").Annotation(model::kStartedAsAnnotation, word);
  }
  void Group(Preemptibility says) {
    model::PodGroup group = MakeGroup("ns", "g", "q", 1);
    group.preemptibility = says;
    state_.UpsertPodGroup(group);
  }
  void RemoveGroup() { state_.RemovePodGroup("ns", "g", ""); }
  PodId Id(absl::string_view name) { return state_.FindPod("ns", name); }
  bool Preemptible(absl::string_view pod) {
    return state_.workload(state_.pod(Id(pod)).workload).preemptible;
  }
  void Start(absl::string_view pod) {
    Transaction txn(state_);
    txn.Allocate(Id(pod), state_.FindNode("n1"));
    txn.Commit();
  }
  void Settle(absl::string_view pod) {
    state_.SettleStarts(state_.pod(Id(pod)).workload, [](const std::string&) { return true; });
  }

  ClusterState state_{OurPods()};
};

TEST_F(StartedPodsTest, ADeletedGroupLeavesItsPodsAsTheyWere) {
  for (const bool preemptible : {false, true}) {
    SCOPED_TRACE(preemptible ? "preemptible" : "non-preemptible");
    Group(preemptible ? Preemptibility::kPreemptible : Preemptibility::kNonPreemptible);
    state_.UpsertPod(Member("a").Preemptible(!preemptible).On("n1"));
    EXPECT_EQ(Preemptible("a"), preemptible);
    RemoveGroup();
    EXPECT_EQ(Preemptible("a"), preemptible);
    state_.UpsertPod(Member("a").Label("x", "y").Preemptible(!preemptible).On("n1"));
    EXPECT_EQ(Preemptible("a"), preemptible);
    state_.RemovePod("ns", "a", "");
  }
}

TEST_F(StartedPodsTest, AClassThatGoesAfterItsGroupChangesNothing) {
  model::PriorityClass firm;
  firm.meta.name = "firm";
  firm.value = 200;
  state_.UpsertPriorityClass(firm);
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.priority_class_name = "firm";
  state_.UpsertPodGroup(group);
  state_.UpsertPod(Member("a").On("n1"));
  EXPECT_FALSE(Preemptible("a"));
  RemoveGroup();
  state_.RemovePriorityClass("firm");
  EXPECT_FALSE(Preemptible("a"));
}

TEST_F(StartedPodsTest, WhatAGroupSaysCountsAsLongAsItExists) {
  Group(Preemptibility::kPreemptible);
  state_.UpsertPod(Member("a").On("n1"));
  Group(Preemptibility::kNonPreemptible);
  RemoveGroup();
  EXPECT_FALSE(Preemptible("a")) << "as it was at last";
  Group(Preemptibility::kPreemptible);
  EXPECT_TRUE(Preemptible("a")) << "it was made again";
  RemoveGroup();
  EXPECT_TRUE(Preemptible("a"));
}

TEST_F(StartedPodsTest, WhatWaitsKeepsNothing) {
  Group(Preemptibility::kNonPreemptible);
  state_.UpsertPod(Member("a"));
  RemoveGroup();
  EXPECT_TRUE(Preemptible("a"));
}

TEST_F(StartedPodsTest, WhatStartsBesideItIsStartedAsIt) {
  Group(Preemptibility::kNonPreemptible);
  state_.UpsertPod(Member("a").On("n1"));
  state_.UpsertPod(Member("b").Created(5));
  state_.UpsertPod(Member("c").Created(6));
  RemoveGroup();
  {
    Transaction txn(state_);
    txn.Allocate(Id("c"), state_.FindNode("n1"));
  }
  Start("b");
  state_.RemovePod("ns", "a", "");
  EXPECT_FALSE(Preemptible("b")) << "before it is settled";
  EXPECT_EQ(state_.pod(Id("c")).started_as, Preemptibility::kByPriority) << "taken back";
  state_.ForgetBinding(Id("b"));
  EXPECT_TRUE(Preemptible("b")) << "nothing runs";
}

TEST_F(StartedPodsTest, WhatAnotherSchedulerBindsIsStartedAsItsGroupIsThen) {
  state_.SetDeciding();
  state_.UpsertPod(StartedAs("a", "preemptible").Preemptible(false));
  EXPECT_FALSE(Preemptible("a")) << "a tenant's word";
  Settle("a");
  state_.UpsertPod(StartedAs("a", "preemptible").Preemptible(true));
  EXPECT_FALSE(Preemptible("a"));
  state_.UpsertPod(Member("a").On("n1", model::PodPhase::kFailed));
  EXPECT_TRUE(Preemptible("a")) << "nothing runs";
}

TEST_F(StartedPodsTest, WhatTheBindingWroteHoldsAfterARestart) {
  state_.UpsertPod(StartedAs("a", "non-preemptible"));
  EXPECT_FALSE(Preemptible("a"));
  state_.UpsertPod(StartedAs("a", "preemptible"));
  EXPECT_FALSE(Preemptible("a")) << "a tenant's word, after the pod came";
  Group(Preemptibility::kPreemptible);
  EXPECT_TRUE(Preemptible("a")) << "its group was seen later";
  RemoveGroup();
  EXPECT_TRUE(Preemptible("a"));
  state_.RemovePod("ns", "a", "");

  state_.UpsertPod(StartedAs("a", "preemptible").Preemptible(false));
  EXPECT_TRUE(Preemptible("a"));
}

TEST_F(StartedPodsTest, NoOtherWordSaysAnything) {
  for (const char* word : {"", "true", "Non-Preemptible", "non-preemptible ", "by-priority"}) {
    state_.UpsertPod(StartedAs("a", word));
    EXPECT_TRUE(Preemptible("a")) << word;
    state_.RemovePod("ns", "a", "");
  }
}

TEST_F(StartedPodsTest, TheWordOfAPodThatWaitsOrRunsAloneSaysNothing) {
  state_.UpsertPod(Member("a").Annotation(model::kStartedAsAnnotation, "non-preemptible"));
  EXPECT_TRUE(Preemptible("a"));
  state_.UpsertPod(PodBuilder("ns", "lone")
                       .Gpus(1)
                       .On("n1")
                       .Annotation(model::kStartedAsAnnotation, "non-preemptible"));
  EXPECT_TRUE(Preemptible("lone"));
}

// What a tenant may do: make a pod that names its node, and annotate it as it likes.
TEST_F(StartedPodsTest, APodThatIsAddedDecidesNothing) {
  static constexpr const char* kWords[] = {"non-preemptible", "preemptible"};
  for (const bool preemptible : {false, true}) {
    SCOPED_TRACE(kWords[preemptible]);
    for (const bool added_is_seen_first : {false, true}) {
      const auto add = [&] {
        state_.UpsertPod(StartedAs("added", kWords[!preemptible])
                             .Created(100)
                             .Preemptible(!preemptible)
                             .Label(model::kTaskPriorityLabel, "99"));
      };
      if (added_is_seen_first) add();
      state_.UpsertPod(StartedAs("old", kWords[preemptible]).Created(1));
      if (!added_is_seen_first) add();
      EXPECT_EQ(Preemptible("old"), preemptible);
      state_.RemovePod("ns", "added", "");
      EXPECT_EQ(Preemptible("old"), preemptible);
      add();
      state_.RemovePod("ns", "old", "");
      EXPECT_EQ(Preemptible("added"), !preemptible) << "it is alone";
      state_.RemovePod("ns", "added", "");
    }
  }
}

TEST_F(StartedPodsTest, APodThatLeavesADeletedGroupForAnotherStaysAsItWas) {
  Group(Preemptibility::kNonPreemptible);
  state_.UpsertPod(Member("a").On("n1"));
  RemoveGroup();
  state_.UpsertPod(Member("a").Group("other").On("n1"));
  EXPECT_FALSE(Preemptible("a"));
}

// An old pod of little worth cannot free what another group holds.
TEST_F(StartedPodsTest, APodThatIsAnnotatedIntoAGroupDecidesNothingThere) {
  state_.UpsertPod(PodBuilder("ns", "old").Gpus(1).Created(1).On("n1"));
  Group(Preemptibility::kNonPreemptible);
  state_.UpsertPod(Member("a").Created(5).On("n1"));
  RemoveGroup();
  state_.UpsertPod(Member("old").Created(1).On("n1"));
  EXPECT_FALSE(Preemptible("a"));
  state_.RemovePod("ns", "a", "");
  EXPECT_FALSE(Preemptible("old"));
}

}  // namespace
}  // namespace fairlead::state
