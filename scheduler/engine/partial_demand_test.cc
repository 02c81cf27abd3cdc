// Of a gang that does not fit as a whole, nodes are demanded for the pods that find no room on the
// nodes that there are.
#include <cstdint>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine::testing {
namespace {

using model::kUnlimited;
using model::testing::PodBuilder;
using verdict::Code;

class PartialDemandTest : public ::testing::Test, public Cluster {
 protected:
  void SetUp() override { Queue("q", kUnlimited); }
  void Run() { last_ = &Cluster::Run(); }

  void Gang(const std::string& name, int pods, int64_t gpus, int64_t created,
            const std::string& queue = "q") {
    Group(PreemptibleGroup(name, queue, pods, created));
    for (int i = 0; i < pods; ++i) {
      Pod(PodBuilder("ns", absl::StrCat(name, "-", i)).Group(name).Gpus(gpus).Created(created));
    }
  }
  // A gang of pods of 4 GPUs each.
  template <typename Change>
  void GangOf(int pods, const Change& change) {
    Group(PreemptibleGroup("gang", "q", pods, 1));
    for (int i = 0; i < pods; ++i) {
      model::Pod pod =
          PodBuilder("ns", absl::StrCat("gang-", i)).Group("gang").Gpus(4).Label("app", "gang");
      change(pod);
      Pod(pod);
    }
  }
  static model::PodAffinityTerm TermOver(absl::string_view key, absl::string_view app) {
    model::PodAffinityTerm term;
    term.topology_key = std::string(key);
    term.selector = {false, {{"app", model::SelectorOperator::kIn, {std::string(app)}}}};
    return term;
  }
  static void Avoid(model::Pod& pod, absl::string_view key, absl::string_view app) {
    pod.spec.pod_anti_affinity.push_back(TermOver(key, app));
  }
  static void Attract(model::Pod& pod, absl::string_view key) {
    pod.spec.pod_affinity.push_back(TermOver(key, "gang"));
  }
  static void Spread(model::Pod& pod, bool hard) {
    model::TopologySpreadConstraint spread;
    spread.topology_key = model::kHostnameLabel;
    spread.do_not_schedule = hard;
    spread.selector = TermOver("", "gang").selector;
    pod.spec.topology_spread.push_back(spread);
  }
  // Pods that nodes are demanded for: all, and those without which the others are of no use.
  std::pair<int64_t, int64_t> Demand(const std::string& workload) {
    const Waiting* waiting = FindWaiting(state(), *last_, workload);
    EXPECT_NE(waiting, nullptr) << workload;
    std::pair<int64_t, int64_t> sum;
    if (waiting == nullptr || !waiting->wants_nodes) return sum;
    for (const verdict::DemandClass& pods : waiting->verdict.demand) {
      sum.first += pods.count;
      sum.second += pods.min_count;
    }
    return sum;
  }

 private:
  const CycleResult* last_ = nullptr;
};

using Pods = std::pair<int64_t, int64_t>;

TEST_F(PartialDemandTest, OnlyWhatFindsNoRoomIsDemanded) {
  Node("a", 8);
  Gang("gang", 5, 4, 1);
  Run();
  EXPECT_TRUE(Bound().empty());
  EXPECT_EQ(Demand("gang"), Pods(3, 3));
}

TEST_F(PartialDemandTest, RoomIsCountedOnce) {
  Node("a", 8);
  Gang("first", 3, 4, 1);
  Gang("second", 3, 4, 2);
  Gang("third", 3, 4, 3);
  Run();
  EXPECT_EQ(Demand("first"), Pods(1, 1));
  EXPECT_EQ(Demand("second"), Pods(3, 3));
  EXPECT_EQ(Demand("third"), Pods(3, 3));
}

TEST_F(PartialDemandTest, RoomThatTheFirstLeavesIsCountedForTheNext) {
  Node("a", 6);
  Gang("large", 2, 4, 1);
  Gang("small", 4, 1, 2);
  Run();
  // The second one fits beside what the first could use, and is bound.
  EXPECT_EQ(Bound().size(), 4u);
  EXPECT_EQ(Demand("large"), Pods(2, 2));
}

TEST_F(PartialDemandTest, PodsOfSeveralKindsAreCountedApart) {
  Node("a", 8);
  Group(PreemptibleGroup("gang", "q", 3, 1));
  Pod(PodBuilder("ns", "launcher").Group("gang").Gpus(0).Cpu(1000));
  Pod(PodBuilder("ns", "worker-0").Group("gang").Gpus(8));
  Pod(PodBuilder("ns", "worker-1").Group("gang").Gpus(8));
  Run();
  EXPECT_EQ(Demand("gang"), Pods(1, 1));
}

// The limit is asked for the whole step: with the nodes all of it runs.
TEST_F(PartialDemandTest, LimitCountsThePartThatFits) {
  Queue("limited", kUnlimited, 10);
  Node("a", 8);
  Gang("gang", 3, 4, 1, "limited");
  Run();
  EXPECT_EQ(Demand("gang"), Pods(0, 0));
  EXPECT_EQ(Cluster::CodeOf("gang"), Code::kQueueLimitReached);
}

// A gang in its queue's limit leaves what is left of it to the next one.
TEST_F(PartialDemandTest, WhatFitsIsChargedOnce) {
  Queue("limited", kUnlimited, 16);
  Node("a", 8);
  Gang("gang", 3, 4, 1, "limited");
  Pod(Job("alone", "limited", 4, 2));
  Pod(Job("beyond", "limited", 4, 3));
  Run();
  EXPECT_THAT(Bound(), ::testing::ElementsAre("alone>a", "beyond>a"));
}

TEST_F(PartialDemandTest, NothingFitsOrNothingIsThere) {
  Gang("gang", 3, 4, 1);
  Run();
  EXPECT_EQ(Demand("gang"), Pods(3, 3));
  Node("a", 2);
  Run();
  EXPECT_EQ(Demand("gang"), Pods(3, 3));
}

// Whether the others fit on new nodes does not depend on where these find room.
TEST_F(PartialDemandTest, PodsThatAvoidEachOtherOnANodeFindRoomToo) {
  Node("a", 8);
  Node("b", 8);
  GangOf(5, [](model::Pod& pod) { Avoid(pod, model::kHostnameLabel, "gang"); });
  Run();
  EXPECT_EQ(Demand("gang"), Pods(3, 3)) << "one on each node, though there is room for four";
}

TEST_F(PartialDemandTest, PodsThatOnlyPreferToBeApartFindRoomToo) {
  Node("a", 8);
  GangOf(5, [](model::Pod& pod) { Spread(pod, /*hard=*/false); });
  Run();
  EXPECT_EQ(Demand("gang"), Pods(3, 3));
}

TEST_F(PartialDemandTest, PodsThatShareDevicesFindRoomToo) {
  Node("a", 1);
  Group(PreemptibleGroup("gang", "q", 5, 1));
  for (int i = 0; i < 5; ++i) {
    Pod(PodBuilder("ns", absl::StrCat("gang-", i)).Group("gang").GpuFraction(500));
  }
  Run();
  EXPECT_EQ(Demand("gang"), Pods(3, 3));
}

// The hook plans these with all nodes, and finds the room that is there itself.
TEST_F(PartialDemandTest, PodsThatDependOnOtherNodesAreDemandedWhole) {
  Node("a", 8);
  for (const auto& depend : std::vector<void (*)(model::Pod&)>{
           [](model::Pod& pod) { Avoid(pod, "zone", "gang"); },
           [](model::Pod& pod) { Attract(pod, model::kHostnameLabel); },
           [](model::Pod& pod) { Spread(pod, /*hard=*/true); }}) {
    GangOf(5, depend);
    Run();
    EXPECT_EQ(Demand("gang").first, 5);
  }
}

TEST_F(PartialDemandTest, PodsThatMatterOnOtherNodesAreDemandedWhole) {
  Node("a", 8);
  GangOf(5, [](model::Pod& pod) { Avoid(pod, model::kHostnameLabel, "gang"); });
  model::Pod shy = PodBuilder("ns", "shy").Queue("q").Gpus(64).Label("app", "shy").Created(9);
  Avoid(shy, "zone", "gang");
  Pod(shy);
  Run();
  EXPECT_EQ(Demand("gang"), Pods(5, 5));
  state().RemovePod("ns", "shy", "");
  Run();
  EXPECT_EQ(Demand("gang"), Pods(4, 4));
}

// What was promised for the demand alone is free in the next cycle.
TEST_F(PartialDemandTest, NextCycleIsFree) {
  Node("a", 8);
  Gang("gang", 3, 4, 1);
  Run();
  Pod(Job("late", "q", 4, 2));
  Run();
  EXPECT_THAT(Bound(), ::testing::ElementsAre("late>a"));
  EXPECT_EQ(Demand("gang"), Pods(2, 2));
}

}  // namespace
}  // namespace fairlead::engine::testing
