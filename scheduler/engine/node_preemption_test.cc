// Preemption by kube-scheduler's rules: which pods of which node, case by case, and that what is
// kept about nodes stays true on random clusters.
#include "scheduler/engine/node_preemption.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/budget_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeBudget;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verdict::Code;

// Each node has four cores; all pods are of the default queue.
class NodePreemptionTest : public ::testing::Test {
 protected:
  void Nodes(const std::vector<std::string>& names) {
    c_.Queue("default-queue", model::kUnlimited);
    for (const std::string& name : names) c_.state().UpsertNode(MakeNode(name, 0, 4));
  }
  static PodBuilder Pod(absl::string_view name, int32_t priority, int64_t cores = 2) {
    return PodBuilder("ns", name).Cpu(cores * 1000).Priority("", priority).Created(1);
  }
  static PodBuilder Running(absl::string_view name, absl::string_view node, int32_t priority,
                            int64_t cores = 2) {
    return Pod(name, priority, cores).On(node).Ready().Started(10);
  }
  std::vector<std::string> Evicted() {
    c_.Run();
    return c_.Evicted();
  }

  Cluster c_{Cluster::Upstream{}};
};

// ---- which node

TEST_F(NodePreemptionTest, TheNodeWhoseMostImportantVictimIsLeastImportant) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", 500, 4));
  c_.Pod(Running("b1", "b", 400));
  c_.Pod(Running("b2", "b", 400));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1", "preempt:b2"));
  EXPECT_THAT(c_.Promised(), ElementsAre("high>b"));
}

TEST_F(NodePreemptionTest, ThenTheSmallestSumOfPriorities) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", 500));
  c_.Pod(Running("a2", "a", 500));
  c_.Pod(Running("b1", "b", 500));
  c_.Pod(Running("b2", "b", 499));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1", "preempt:b2"));
}

// Of negative priorities too: each counts as much as a pod.
TEST_F(NodePreemptionTest, FewerPodsHaveTheSmallerSum) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", -500));
  c_.Pod(Running("a2", "a", -500));
  c_.Pod(Running("b1", "b", -500, 4));
  c_.Pod(Pod("high", 0, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1"));
}

TEST_F(NodePreemptionTest, ThenTheVictimThatStartedLast) {
  Nodes({"a", "b", "c"});
  c_.Pod(Running("a1", "a", 500, 4).Started(20));
  c_.Pod(Running("b1", "b", 500, 4).Started(30));
  c_.Pod(Running("c1", "c", 500, 4).Started(10));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1"));
}

TEST_F(NodePreemptionTest, ThenTheNameOfTheNode) {
  Nodes({"b", "a"});
  c_.Pod(Running("a1", "a", 500, 4));
  c_.Pod(Running("b1", "b", 500, 4));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:a1"));
}

TEST_F(NodePreemptionTest, BudgetsComeBeforePriorities) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", 1, 4).Label("app", "web"));
  c_.Pod(Running("b1", "b", 999, 4));
  c_.Budget(MakeBudget("web", "web", 0));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1"));
}

// ---- which pods of a node

TEST_F(NodePreemptionTest, ThePodsThatMatterLeastGo) {
  Nodes({"a"});
  c_.Pod(Running("older", "a", 500, 1).Started(5));
  c_.Pod(Running("lower", "a", 400, 1).Started(1));
  c_.Pod(Running("younger", "a", 500, 1).Started(20));
  c_.Pod(Running("equal", "a", 1000, 1));
  c_.Pod(Pod("high", 1000, 1));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:lower"));
}

TEST_F(NodePreemptionTest, ThePodThatStartedLastGoes) {
  Nodes({"a"});
  c_.Pod(Running("older", "a", 500).Started(5));
  c_.Pod(Running("younger", "a", 500).Started(20));
  c_.Pod(Pod("high", 1000));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:younger"));
}

TEST_F(NodePreemptionTest, AMoreImportantPodGoesIfTheOthersAreTooSmall) {
  Nodes({"a"});
  c_.Pod(Running("large", "a", 500, 3));
  c_.Pod(Running("small", "a", 400, 1));
  c_.Pod(Pod("high", 1000, 2));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:large"));
}

TEST_F(NodePreemptionTest, ABudgetProtectsALessImportantPod) {
  Nodes({"a"});
  c_.Pod(Running("web", "a", 100).Label("app", "web"));
  c_.Pod(Running("batch", "a", 500));
  c_.Budget(MakeBudget("web", "web", 0));
  c_.Pod(Pod("high", 1000));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:batch"));
}

// The API server has the last word on it.
TEST_F(NodePreemptionTest, WithoutAnotherChoiceAProtectedPodIsAskedFor) {
  Nodes({"a"});
  c_.Pod(Running("web", "a", 100, 4).Label("app", "web"));
  c_.Budget(MakeBudget("web", "web", 0));
  c_.Pod(Pod("high", 1000));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:web"));
  EXPECT_TRUE(c_.Result().evictions[0].against_budget);
}

TEST_F(NodePreemptionTest, APodWhoseEvictionWasRefusedStays) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", 100, 4));
  c_.Pod(Running("b1", "b", 500, 4));
  c_.Pod(Pod("high", 1000));
  c_.engine().OnEvictionRefused(c_.state().FindPod("ns", "a1"), At(1000), /*by_budget=*/false,
                                At(100));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:b1"));
}

TEST_F(NodePreemptionTest, OnlyPreemptiblePodsOfTheQueueGo) {
  Nodes({"a"});
  c_.Queue("other", model::kUnlimited);
  c_.Pod(Running("kept", "a", 100).Preemptible(false));
  c_.Pod(Running("others", "a", 100).Queue("other"));
  c_.Pod(Pod("high", 1000, 4));
  EXPECT_THAT(Evicted(), IsEmpty());
  EXPECT_EQ(c_.CodeOf("high"), Code::kInsufficientCapacity);
}

TEST_F(NodePreemptionTest, APodAtTheMinimumOfItsGangTakesTheGangAlong) {
  Nodes({"a", "b"});
  model::PodGroup group = MakeGroup("ns", "gang", "default-queue", 2);
  c_.Group(group);
  c_.Pod(Running("g1", "a", 100).Group("gang"));
  c_.Pod(Running("g2", "b", 100).Group("gang"));
  c_.Pod(Running("a1", "a", 2000));
  c_.Pod(Running("b1", "b", 2000));
  c_.Pod(Pod("high", 1000));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:g1", "preempt:g2"));
}

// The promise of `g2` is given up with its gang.
TEST_F(NodePreemptionTest, AGangOfWhichAPodIsPromisedRoomThereGoesAsAWhole) {
  Nodes({"a"});
  c_.Group(MakeGroup("ns", "gang", "default-queue", 2));
  c_.Pod(Running("leaving", "a", 5000, 2).Deleting());
  c_.Pod(Running("stays", "a", 5000, 1));
  c_.Pod(Running("g1", "a", 100, 1).Group("gang"));
  c_.Pod(Pod("g2", 100, 2).Group("gang"));
  c_.Pod(Pod("high", 1000, 3));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:g1"));
  EXPECT_THAT(c_.Promised(), ElementsAre("high>a"));
}

// Room that is promised to a pod of lower priority is given up for the victim's sake.
TEST_F(NodePreemptionTest, APromiseToAPodOfLowerPriorityGoesWithTheVictim) {
  Nodes({"a"});
  c_.Pod(Running("leaving", "a", 5000, 2).Deleting());
  c_.Pod(Running("low", "a", 100, 2));
  c_.Pod(Pod("lower", 50, 2));
  c_.Pod(Pod("high", 1000, 3));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:low"));
  EXPECT_THAT(c_.Promised(), ElementsAre("high>a"));
}

TEST_F(NodePreemptionTest, OfAGangAboveItsMinimumOnePodGoes) {
  Nodes({"a", "b"});
  c_.Group(MakeGroup("ns", "gang", "default-queue", 1));
  c_.Pod(Running("g1", "a", 100, 4).Group("gang").Created(1));
  c_.Pod(Running("g2", "b", 100, 4).Group("gang").Created(2));
  c_.Pod(Pod("high", 1000));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:g2"));
}

// ---- what priorities mean

TEST_F(NodePreemptionTest, NoPodIsEvictedForOneThatNeverPreempts) {
  Nodes({"a"});
  c_.Pod(Running("low", "a", 0, 4));
  c_.Pod(Pod("patient", 1000).NeverPreempts());
  EXPECT_THAT(Evicted(), IsEmpty());
  ASSERT_NE(c_.VerdictOf("patient"), nullptr);
  EXPECT_FALSE(c_.VerdictOf("patient")->may_preempt);
  // Of pods that are alike but for that, too.
  c_.Pod(Pod("eager", 1000));
  c_.Run(200);
  EXPECT_THAT(c_.Evicted(), ElementsAre("preempt:low"));
  EXPECT_THAT(c_.Promised(), ElementsAre("eager>a"));
}

TEST_F(NodePreemptionTest, NoPodIsMovedForAnotherOne) {
  Nodes({"a", "b"});
  c_.Pod(Running("a1", "a", 0));
  c_.Pod(Running("b1", "b", 0));
  c_.Pod(Pod("large", 0, 4));
  c_.Run(100'000);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
}

TEST_F(NodePreemptionTest, KaisLabelOfThePriorityIsNotRead) {
  Nodes({"a"});
  model::PriorityClass highest;
  highest.meta.name = "highest";
  highest.value = 90;
  c_.state().UpsertPriorityClass(highest);
  c_.Pod(Running("low", "a", 10, 4).Label(model::kPriorityClassLabel, "highest"));
  c_.Pod(Pod("high", 20));
  EXPECT_THAT(Evicted(), ElementsAre("preempt:low"));
}

TEST_F(NodePreemptionTest, ThePriorityClassOfAPodGroupIsRead) {
  Nodes({"a"});
  model::PriorityClass patient;
  patient.meta.name = "patient";
  patient.value = 5000;
  patient.never_preempts = true;
  c_.state().UpsertPriorityClass(patient);
  model::PodGroup group = MakeGroup("ns", "gang", "default-queue", 1);
  group.priority_class_name = "patient";
  c_.Group(group);
  c_.Pod(Running("low", "a", 10, 4));
  c_.Pod(Pod("g1", 0).Group("gang"));
  EXPECT_THAT(Evicted(), IsEmpty());
  patient.never_preempts = false;
  c_.state().UpsertPriorityClass(patient);
  c_.Run(200);
  EXPECT_THAT(c_.Evicted(), ElementsAre("preempt:low"));
}

// ---- what is kept

// Cluster::Run() compares it with dry runs. Two kinds of pods ask in turn.
TEST_F(NodePreemptionTest, WhatIsKeptStaysTrue) {
  int64_t evicted = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const auto between = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Cluster c{Cluster::Upstream{}};
    c.Queue("default-queue", model::kUnlimited);
    for (int i = 0; i < 6; ++i) c.state().UpsertNode(MakeNode(absl::StrCat("n", i), 0, 4));
    for (int gang = 0; gang < 3; ++gang) {
      c.Group(MakeGroup("ns", absl::StrCat("gang-", gang), "default-queue", gang + 1));
    }
    for (int step = 0; step < 120; ++step) {
      const std::string name = absl::StrCat("p", between(0, 40));
      PodBuilder pod = PodBuilder("ns", name)
                           .Cpu(between(1, 3) * 1000)
                           .Priority("", between(0, 4) * 100)
                           .Created(between(0, 5));
      if (between(0, 1) == 0) pod.Label("app", between(0, 1) == 0 ? "web" : "db");
      if (name.back() < '3') pod.Group(absl::StrCat("gang-", name.substr(name.size() - 1)));
      switch (between(0, 19)) {
        case 0:
          c.state().RemovePod("ns", name, "");
          break;
        case 1:
          c.Budget(MakeBudget(between(0, 1) == 0 ? "web" : "db", between(0, 3) == 0 ? "db" : "web",
                              between(0, 2)));
          break;
        case 2:
          c.state().RemoveNode(absl::StrCat("n", between(0, 5)), "");
          break;
        case 3:
          c.state().UpsertNode(MakeNode(absl::StrCat("n", between(0, 5)), 0, between(3, 5)));
          break;
        default: {
          const state::PodId known = c.state().FindPod("ns", name);
          if (known == state::kNoId) {
            c.Pod(pod);
            break;
          }
          // It starts where it was bound, or says something else.
          const state::NodeId node = c.state().pod(known).node;
          if (node == state::kNoId) break;
          pod.On(c.state().node(node).name()).Started(between(0, 50));
          if (between(0, 1) == 0) pod.Ready();
          if (between(0, 4) == 0) pod.Deleting();
          c.Pod(pod);
        }
      }
      evicted += static_cast<int64_t>(c.Run(100 + step).evictions.size());
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(evicted, 10);
}

}  // namespace
}  // namespace fairlead::engine
