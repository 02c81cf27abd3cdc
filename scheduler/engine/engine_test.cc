#include "scheduler/engine/engine.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using model::kUnlimited;
using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using testing::Member;
using testing::PreemptibleGroup;
using verdict::Code;

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : state_(testing::OurPods()), tree_(state_.resource_names()) {
    engine_ = testing::MakeEngine(EngineOptions{}, state_, tree_);
  }
  void TearDown() override { EXPECT_EQ(engine_->CheckConsistency(), ""); }

  void Queue(absl::string_view name, int64_t quota, int64_t limit = kUnlimited, int64_t weight = 1,
             absl::string_view parent = "") {
    model::Queue queue = MakeQueue(name, parent, quota, limit, weight);
    queue.meta.creation = At(static_cast<int64_t>(tree_.size()));
    tree_.Upsert(queue);
  }
  CycleResult Cycle(int64_t at = 100) {
    CycleResult result = engine_->RunCycle(At(at));
    result.waiting = engine_->ExpandEquivalents(std::move(result.waiting));
    EXPECT_EQ(engine_->CheckConsistency(), "");
    return result;
  }
  // pod -> node, for bindings
  std::map<std::string, std::string> Bound(const CycleResult& result) {
    return testing::BoundBy(state_, result);
  }
  std::vector<std::string> Evicted(const CycleResult& result) {
    std::vector<std::string> names;
    for (const Eviction& eviction : result.evictions)
      names.push_back(state_.pod(eviction.pod).name);
    std::sort(names.begin(), names.end());
    return names;
  }
  const Waiting* Find(const CycleResult& result, absl::string_view workload) {
    return testing::FindWaiting(state_, result, workload);
  }
  Code CodeOf(const CycleResult& result, absl::string_view workload) {
    return testing::CodeOf(Find(result, workload));
  }
  void Running(absl::string_view name, absl::string_view queue, int64_t gpus,
               absl::string_view node, bool preemptible = true, int64_t created = 0) {
    state_.UpsertPod(PodBuilder("ns", name)
                         .Queue(queue)
                         .Gpus(gpus)
                         .On(node)
                         .Preemptible(preemptible)
                         .Created(created));
  }

  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, BinPacksOntoTheFullestNodeAndBreaksTiesByName) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("b", 8));
  state_.UpsertNode(MakeNode("a", 8));
  state_.UpsertNode(MakeNode("c", 8));
  Running("r", "q", 3, "c");
  state_.UpsertPod(PodBuilder("ns", "p1").Queue("q").Gpus(4));
  state_.UpsertPod(PodBuilder("ns", "p2").Queue("q").Gpus(4));
  const auto bound = Bound(Cycle());
  EXPECT_EQ(bound.at("p1"), "c");
  EXPECT_EQ(bound.at("p2"), "a");
}

TEST_F(EngineTest, GangIsPlacedWholeOrNotAtAll) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 2));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 3));
  for (int i = 0; i < 3; ++i) state_.UpsertPod(Member(absl::StrCat("g", i), "g"));
  CycleResult result = Cycle();
  EXPECT_TRUE(result.bindings.empty());
  ASSERT_NE(Find(result, "g"), nullptr);
  const Waiting& waiting = *Find(result, "g");
  EXPECT_EQ(waiting.verdict.code, Code::kInsufficientCapacity);
  EXPECT_TRUE(waiting.wants_nodes);
  ASSERT_EQ(waiting.verdict.demand.size(), 1u);
  EXPECT_EQ(waiting.verdict.demand[0].count, 1);
  EXPECT_EQ(waiting.verdict.demand[0].min_count, 1);
  state_.UpsertNode(MakeNode("b", 1));
  result = Cycle();
  EXPECT_EQ(Bound(result).size(), 3u);
  EXPECT_TRUE(result.waiting.empty());
}

TEST_F(EngineTest, GangShortOfPodsSaysSoAndIsNotTried) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 3));
  state_.UpsertPod(Member("g0", "g"));
  state_.UpsertPod(Member("g1", "g"));
  EXPECT_EQ(CodeOf(Cycle(), "g"), Code::kGangIncomplete);
  state_.UpsertPod(Member("g2", "g").Gate("hold"));
  EXPECT_EQ(CodeOf(Cycle(), "g"), Code::kGated);
}

TEST_F(EngineTest, ElasticExtrasFollowOneByOneAndTheRestWaits) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 4));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 2));
  for (int i = 0; i < 6; ++i) state_.UpsertPod(Member(absl::StrCat("g", i), "g"));
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result).size(), 4u);
  const Waiting* waiting = Find(result, "g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->verdict.code, Code::kInsufficientCapacity);
  EXPECT_EQ(waiting->verdict.pods_waiting, 2);
  EXPECT_EQ(waiting->verdict.pods_running, 4);
  ASSERT_EQ(waiting->verdict.demand.size(), 1u);
  EXPECT_EQ(waiting->verdict.demand[0].count, 2);
}

TEST_F(EngineTest, LimitHoldsAtEveryAncestorAndWantsNoNodes) {
  Queue("top", kUnlimited, 3);
  Queue("leaf", kUnlimited, kUnlimited, 1, "top");
  state_.UpsertNode(MakeNode("a", 8));
  Running("r", "leaf", 2, "a");
  state_.UpsertPod(PodBuilder("ns", "p1").Queue("leaf").Gpus(1).Created(1));
  state_.UpsertPod(PodBuilder("ns", "p2").Queue("leaf").Gpus(1).Created(2));
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result).size(), 1u);
  const Waiting* waiting = Find(result, "p2");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->verdict.code, Code::kQueueLimitReached);
  EXPECT_FALSE(waiting->wants_nodes);
  ASSERT_TRUE(waiting->verdict.queue_block.has_value());
  EXPECT_EQ(waiting->verdict.queue_block->queue, "top");
  EXPECT_EQ(waiting->verdict.queue_block->limit, 3000);
  EXPECT_EQ(waiting->verdict.queue_block->used, 3000);
  EXPECT_EQ(waiting->verdict.queue_block->requested, 1000);
}

// Research, quota 4 and limit 8, asks for ten GPUs of an empty cluster: eight may be bought, two
// wait for the limit although nothing runs yet.
TEST_F(EngineTest, DemandIsClippedAtTheLimitBeforeAnythingRuns) {
  Queue("research", 4, 8);
  for (int i = 0; i < 10; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("p", i)).Queue("research").Gpus(1).Created(i));
  }
  const CycleResult result = Cycle();
  int wants = 0;
  int limited = 0;
  for (const Waiting& waiting : result.waiting) {
    wants += waiting.wants_nodes ? 1 : 0;
    limited += waiting.verdict.code == Code::kQueueLimitReached ? 1 : 0;
    EXPECT_NE(waiting.wants_nodes, waiting.verdict.code == Code::kQueueLimitReached);
  }
  EXPECT_EQ(wants, 8);
  EXPECT_EQ(limited, 2);
  EXPECT_EQ(CodeOf(result, "p9"), Code::kQueueLimitReached);
  EXPECT_EQ(CodeOf(result, "p8"), Code::kQueueLimitReached);
}

TEST_F(EngineTest, NonPreemptibleStaysWithinQuota) {
  Queue("q", 1);
  state_.UpsertNode(MakeNode("a", 8));
  state_.UpsertPod(PodBuilder("ns", "p1").Queue("q").Gpus(1).Preemptible(false).Created(1));
  state_.UpsertPod(PodBuilder("ns", "p2").Queue("q").Gpus(1).Preemptible(false).Created(2));
  state_.UpsertPod(PodBuilder("ns", "p3").Queue("q").Gpus(1).Preemptible(true).Created(3));
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result).count("p1"), 1u);
  EXPECT_EQ(CodeOf(result, "p2"), Code::kNonPreemptibleOverQuota);
  EXPECT_EQ(Bound(result).count("p3"), 1u);
}

TEST_F(EngineTest, QueueFaultsAreSaidAndHarmNoOtherQueue) {
  Queue("good", kUnlimited);
  Queue("parent", kUnlimited);
  Queue("child", kUnlimited, kUnlimited, 1, "parent");
  Queue("orphan", kUnlimited, kUnlimited, 1, "nowhere");
  state_.UpsertNode(MakeNode("a", 8));
  for (const char* queue : {"good", "parent", "orphan", "missing"}) {
    state_.UpsertPod(PodBuilder("ns", queue).Queue(queue).Gpus(1));
  }
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result), (std::map<std::string, std::string>{{"good", "a"}}));
  EXPECT_EQ(CodeOf(result, "parent"), Code::kQueueNotLeaf);
  EXPECT_EQ(CodeOf(result, "orphan"), Code::kQueueNotFound);
  EXPECT_EQ(CodeOf(result, "missing"), Code::kQueueNotFound);
  // The queue is made: its pod runs.
  Queue("missing", kUnlimited);
  EXPECT_EQ(Bound(Cycle()).count("missing"), 1u);
}

TEST_F(EngineTest, InvalidPodIsRefusedWithItsFault) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 8));
  model::Pod pod = PodBuilder("ns", "bad").Queue("q");
  pod.invalid = "annotation gpu-fraction: \"1.5\" is not between 0 and 1";
  state_.UpsertPod(pod);
  const CycleResult result = Cycle();
  EXPECT_EQ(CodeOf(result, "bad"), Code::kInvalidRequest);
  EXPECT_EQ(Find(result, "bad")->verdict.subject, pod.invalid);
}

TEST_F(EngineTest, PodOfAGroupThatDoesNotExistWaitsForIt) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 8));
  state_.UpsertPod(PodBuilder("ns", "p").Queue("q").Group("g"));
  EXPECT_EQ(CodeOf(Cycle(), "g"), Code::kMissingObject);
}

TEST_F(EngineTest, FailedPredicatesCountNodesAndTheSmallestShortfall) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 8));
  state_.UpsertNode(MakeNode("b", 8));
  model::Node tainted = MakeNode("t", 8);
  tainted.taints = {{"team", "x", model::TaintEffect::kNoSchedule}};
  state_.UpsertNode(tainted);
  Running("ra", "q", 6, "a", false);
  Running("rb", "q", 7, "b", false);
  state_.UpsertPod(PodBuilder("ns", "p").Queue("q").Gpus(4));
  const CycleResult result = Cycle();
  const Waiting* waiting = Find(result, "p");
  ASSERT_NE(waiting, nullptr);
  ASSERT_EQ(waiting->verdict.failed_predicates.size(), 2u);
  const auto& first = waiting->verdict.failed_predicates[0];
  EXPECT_EQ(first.nodes, 2);
  ASSERT_EQ(first.missing.size(), 1u);
  EXPECT_EQ(first.missing[0].resource, "nvidia.com/gpu");
  EXPECT_EQ(first.missing[0].smallest, 2000);
  EXPECT_EQ(waiting->verdict.failed_predicates[1].nodes, 1);
}

TEST_F(EngineTest, PodsArePromisedOrderedNodesButNeverBoundToThem) {
  Queue("q", kUnlimited);
  state_.UpsertOrderedNode(MakeNode("fl-1", 2), "fl-1");
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(1).Created(i));
  }
  const CycleResult result = Cycle();
  EXPECT_TRUE(result.bindings.empty());
  EXPECT_EQ(CodeOf(result, "p0"), Code::kNodesRequested);
  EXPECT_EQ(CodeOf(result, "p1"), Code::kNodesRequested);
  EXPECT_EQ(CodeOf(result, "p2"), Code::kInsufficientCapacity);
  EXPECT_FALSE(Find(result, "p0")->wants_nodes);
  EXPECT_TRUE(Find(result, "p2")->wants_nodes);
  EXPECT_EQ(Find(result, "p0")->verdict.node_requests, (std::vector<std::string>{"fl-1"}));
  // Promises end with the cycle.
  EXPECT_TRUE(state_.node(state_.FindNode("fl-1")).pipelined.IsZero());
}

TEST_F(EngineTest, FreedRoomIsPromisedInOrderSoThatNoPodStealsIt) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("a", 4));
  state_.UpsertPod(PodBuilder("ns", "dying").Queue("q").Gpus(2).On("a").Deleting());
  state_.UpsertPod(PodBuilder("ns", "big").Queue("q").Gpus(4).Created(1));
  state_.UpsertPod(PodBuilder("ns", "small").Queue("q").Gpus(1).Created(2));
  CycleResult result = Cycle();
  EXPECT_TRUE(result.bindings.empty());
  EXPECT_EQ(CodeOf(result, "big"), Code::kWaitingForVictims);
  state_.RemovePod("ns", "dying", "");
  result = Cycle();
  EXPECT_EQ(Bound(result), (std::map<std::string, std::string>{{"big", "a"}}));
}

TEST_F(EngineTest, ReclaimTakesFromTheQueueAboveItsShareAndOnlyWhatItNeeds) {
  Queue("a", 4);
  Queue("b", 4);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 8; ++i) Running(absl::StrCat("b", i), "b", 1, "n", true, i);
  state_.UpsertPod(PodBuilder("ns", "want").Queue("a").Gpus(2));
  CycleResult result = Cycle();
  EXPECT_EQ(CodeOf(result, "want"), Code::kWaitingForVictims);
  // The youngest give way.
  EXPECT_EQ(Evicted(result), (std::vector<std::string>{"b6", "b7"}));
  // Nothing more is evicted while they terminate.
  result = Cycle();
  EXPECT_TRUE(result.evictions.empty());
  EXPECT_EQ(CodeOf(result, "want"), Code::kWaitingForVictims);
  state_.RemovePod("ns", "b6", "");
  state_.RemovePod("ns", "b7", "");
  EXPECT_EQ(Bound(Cycle()).count("want"), 1u);
}

TEST_F(EngineTest, NoReclaimBeyondTheFairShareAndTheVerdictSaysWhy) {
  Queue("a", 4);
  Queue("b", 4);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 4; ++i) Running(absl::StrCat("a", i), "a", 1, "n");
  for (int i = 0; i < 4; ++i) Running(absl::StrCat("b", i), "b", 1, "n");
  state_.UpsertPod(PodBuilder("ns", "more").Queue("a").Gpus(1));
  const CycleResult result = Cycle();
  EXPECT_TRUE(result.evictions.empty());
  ASSERT_EQ(CodeOf(result, "more"), Code::kInsufficientCapacity);
  ASSERT_FALSE(Find(result, "more")->verdict.details.empty());
  EXPECT_NE(Find(result, "more")->verdict.details[0].find("fair share"), std::string::npos);
}

TEST_F(EngineTest, NonPreemptibleVictimsAreNeverTaken) {
  Queue("a", 4);
  Queue("b", 4);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 8; ++i) Running(absl::StrCat("b", i), "b", 1, "n", false);
  state_.UpsertPod(PodBuilder("ns", "want").Queue("a").Gpus(1));
  EXPECT_TRUE(Cycle().evictions.empty());
}

TEST_F(EngineTest, MinimumRuntimeProtectsFromReclaim) {
  Queue("a", 4);
  model::Queue b = MakeQueue("b", "", 4, kUnlimited);
  b.reclaim_min_runtime = absl::Seconds(60);
  tree_.Upsert(b);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 8; ++i) {
    state_.UpsertPod(
        PodBuilder("ns", absl::StrCat("b", i))
            .Queue("b")
            .Gpus(1)
            .On("n")
            .Preemptible(true)
            .Annotation(model::kLastStartAnnotation,
                        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", At(50), absl::UTCTimeZone())));
  }
  state_.UpsertPod(PodBuilder("ns", "want").Queue("a").Gpus(1));
  const CycleResult before = Cycle(100);
  EXPECT_TRUE(before.evictions.empty());
  ASSERT_FALSE(Find(before, "want")->verdict.details.empty());
  EXPECT_NE(Find(before, "want")->verdict.details[0].find("minimum runtime"), std::string::npos);
  EXPECT_EQ(Cycle(111).evictions.size(), 1u);
}

TEST_F(EngineTest, WholeGangOrNothingIsTheVictim) {
  Queue("a", 4);
  Queue("b", 0);
  state_.UpsertNode(MakeNode("n", 4));
  state_.UpsertPodGroup(PreemptibleGroup("gang", "b", 2));
  for (int i = 0; i < 2; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("gang", i)).Group("gang").Gpus(2).On("n"));
  }
  state_.UpsertPod(PodBuilder("ns", "want").Queue("a").Gpus(1));
  EXPECT_EQ(Evicted(Cycle()), (std::vector<std::string>{"gang0", "gang1"}));
}

TEST_F(EngineTest, ElasticVictimGivesItsExtrasFirst) {
  Queue("a", 4);
  Queue("b", 0);
  state_.UpsertNode(MakeNode("n", 4));
  state_.UpsertPodGroup(PreemptibleGroup("g", "b", 1));
  for (int i = 0; i < 4; ++i) {
    state_.UpsertPod(Member(absl::StrCat("g", i), "g").On("n").Created(i));
  }
  state_.UpsertPod(PodBuilder("ns", "want").Queue("a").Gpus(2));
  EXPECT_EQ(Evicted(Cycle()), (std::vector<std::string>{"g2", "g3"}));
}

TEST_F(EngineTest, PreemptionIsInsideTheQueueAndFromLowerPriority) {
  Queue("q", kUnlimited);
  Queue("other", kUnlimited);
  model::PriorityClass high;
  high.meta.name = "high";
  high.value = 80;
  state_.UpsertPriorityClass(high);
  state_.UpsertNode(MakeNode("n", 4));
  for (int i = 0; i < 2; ++i) Running(absl::StrCat("q", i), "q", 1, "n", true, i);
  for (int i = 0; i < 2; ++i) Running(absl::StrCat("o", i), "other", 1, "n", true, i);
  state_.UpsertPod(PodBuilder("ns", "same").Queue("q").Gpus(1));
  EXPECT_TRUE(Cycle().evictions.empty());
  state_.UpsertPod(PodBuilder("ns", "want").Queue("q").Gpus(1).Priority("high", 80).Created(5));
  EXPECT_EQ(Evicted(Cycle()), (std::vector<std::string>{"q1"}));
}

TEST_F(EngineTest, PreemptionDelayHoldsEvictionsBackAndTellsUntilWhen) {
  Queue("a", 4);
  Queue("b", 0);
  state_.UpsertNode(MakeNode("n", 4));
  for (int i = 0; i < 4; ++i) Running(absl::StrCat("b", i), "b", 1, "n");
  model::PodGroup group = MakeGroup("ns", "g", "a", 1);
  group.preemption_delay = absl::Seconds(200);
  state_.UpsertPodGroup(group);
  state_.UpsertPod(Member("g0", "g"));
  const CycleResult before = Cycle(100);
  EXPECT_TRUE(before.evictions.empty());
  EXPECT_EQ(before.wake_at, At(200));
  EXPECT_TRUE(Find(before, "g")->wants_nodes);
  EXPECT_EQ(Cycle(200).evictions.size(), 1u);
}

TEST_F(EngineTest, BindFailureBacksOffAndThenTriesAgain) {
  Queue("q", kUnlimited);
  state_.UpsertNode(MakeNode("n", 4));
  state_.UpsertPod(PodBuilder("ns", "p").Queue("q").Gpus(1));
  ASSERT_EQ(Cycle(100).bindings.size(), 1u);
  const state::PodId pod = state_.FindPod("ns", "p");
  engine_->OnBindFailed(pod, At(100));
  state_.ForgetBinding(pod);
  const CycleResult waiting = Cycle(100);
  EXPECT_TRUE(waiting.bindings.empty());
  EXPECT_EQ(waiting.wake_at, At(101));
  EXPECT_EQ(Cycle(101).bindings.size(), 1u);
}

TEST_F(EngineTest, QueueBelowItsShareIsServedFirst) {
  Queue("a", 2);
  Queue("b", 2);
  state_.UpsertNode(MakeNode("n", 3));
  Running("ra", "a", 1, "n");
  Running("rb", "a", 1, "n");
  state_.UpsertPod(PodBuilder("ns", "pa").Queue("a").Gpus(1).Created(1));
  state_.UpsertPod(PodBuilder("ns", "pb").Queue("b").Gpus(1).Created(2));
  EXPECT_EQ(Bound(Cycle()), (std::map<std::string, std::string>{{"pb", "n"}}));
}

TEST_F(EngineTest, ASecondCycleWithNothingNewDecidesNothingNew) {
  Queue("q", 4, 8);
  state_.UpsertNode(MakeNode("n", 4));
  for (int i = 0; i < 10; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(1).Created(i));
  }
  Cycle();
  const std::string before = state_.Dump();
  const CycleResult again = Cycle();
  EXPECT_TRUE(again.bindings.empty());
  EXPECT_TRUE(again.evictions.empty());
  EXPECT_EQ(again.waiting.size(), 6u);
  EXPECT_EQ(state_.Dump(), before);
}

TEST_F(EngineTest, CountThatFitUsesFiltersAndArithmetic) {
  model::PodSpec spec = PodBuilder("ns", "x").Gpus(2).Build().spec;
  auto shared = std::make_shared<const model::PodSpec>(spec);
  EXPECT_EQ(engine_->CountThatFit(MakeNode("v", 8), {}, shared, 100), 4);
  EXPECT_EQ(engine_->CountThatFit(MakeNode("v", 8), {{shared, 3}}, shared, 100), 1);
  EXPECT_EQ(engine_->CountThatFit(MakeNode("v", 8), {}, shared, 2), 2);
  spec.node_selector.Set("zone", "a");
  auto selective = std::make_shared<const model::PodSpec>(spec);
  EXPECT_EQ(engine_->CountThatFit(MakeNode("v", 8), {}, selective, 100), 0);
}

}  // namespace
}  // namespace fairlead::engine
