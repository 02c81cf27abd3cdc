// Workloads that do not evict at once by their own configuration: preemption delays, and groups
// that had their one attempt.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Member;
using verdict::Code;

constexpr char kDelay[] = "kai.scheduler/preemption-delay";

PodBuilder CpuJob(absl::string_view name, absl::string_view queue, int64_t created = 0) {
  return testing::Job(name, queue, /*gpus=*/1, created);
}

// ---- preemption delay

struct DelayCase {
  const char* title;
  int64_t quota_of_holder;  // of the 1 GPU that there is
  int32_t priority;         // of the pod that waits in the holder's queue; 0: in a queue of its own
  bool told;
};

// Only where time alone would mend it is a time told.
TEST(DelayTest, TheEndIsToldIfAVictimMightGiveWayThen) {
  const DelayCase cases[] = {
      {"the other queue has more than its share", 0, 0, true},
      {"the other queue is within its quota", 1, 0, false},
      {"the holder is less important", 1, 80, true},
      {"the holder is as important", 1, 50, false},
  };
  for (const DelayCase& c : cases) {
    Cluster cluster;
    const char* queue = c.priority == 0 ? "own" : "holder";
    cluster.Queue("holder", c.quota_of_holder);
    cluster.Queue("own", 1);
    cluster.Node("n", 1);
    cluster.Pod(CpuJob("runs", "holder").Priority("mid", 50).On("n"));
    cluster.Pod(CpuJob("young", queue, 50)
                    .Priority("p", c.priority == 0 ? 50 : c.priority)
                    .Annotation(kDelay, "100s"));
    const CycleResult before = cluster.Run(100);
    EXPECT_THAT(cluster.Evicted(), IsEmpty()) << c.title;
    ASSERT_NE(cluster.VerdictOf("young"), nullptr);
    EXPECT_EQ(cluster.CodeOf("young"), Code::kInsufficientCapacity) << c.title;
    EXPECT_EQ(cluster.VerdictOf("young")->until.has_value(), c.told) << c.title;
    EXPECT_EQ(absl::StrContains(cluster.DetailsOf("young"), "no eviction for this workload before"),
              c.told)
        << c.title;
    if (c.told) {
      EXPECT_EQ(cluster.VerdictOf("young")->until, At(150)) << c.title;
    }
    EXPECT_EQ(before.wake_at, At(150)) << c.title;
    cluster.Run(150);
    EXPECT_EQ(cluster.Evicted().size(), c.told ? 1u : 0u) << c.title;
  }
}

TEST(DelayTest, ItHoldsConsolidationToo) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 2);
  c.Node("n2", 2);
  c.Pod(CpuJob("a", "q", 1).On("n1"));
  c.Pod(CpuJob("b", "q", 2).On("n2"));
  c.Pod(CpuJob("big", "q", 50).Gpus(2).Annotation(kDelay, "100s"));
  c.Run(149);
  EXPECT_THAT(c.Evicted(), IsEmpty());
  c.Run(150);
  EXPECT_THAT(c.Evicted(), ElementsAre("consolidation:b>n1"));
}

// They look alike, and each may evict from a time of its own on.
TEST(DelayTest, EachOfManyPodsHasItsOwnEnd) {
  Cluster c;
  c.Queue("low", 0);
  c.Queue("high", 4);
  c.Node("n", 4);
  for (int i = 0; i < 4; ++i) c.Pod(CpuJob(absl::StrCat("v", i), "low", i).On("n"));
  for (int i = 0; i < 3; ++i) {
    c.Pod(CpuJob(absl::StrCat("p", i), "high", 10 * i).Annotation(kDelay, "100s"));
  }
  c.Run(99);
  EXPECT_THAT(c.Evicted(), IsEmpty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(c.VerdictOf(absl::StrCat("p", i))->until, At(100 + 10 * i));
  }
  const CycleResult result = c.Run(110);
  EXPECT_EQ(c.Evicted().size(), 2u);
  EXPECT_EQ(result.wake_at, At(120));
}

TEST(DelayTest, AnAnnotationThatIsNoneHarmsNothingAndIsToldToWaitingPods) {
  Cluster c;
  c.Queue("low", 0);
  c.Queue("high", 1, 1);
  c.Node("n", 2);
  c.Pod(CpuJob("v", "low").On("n"));
  c.Pod(CpuJob("free", "high", 1).Annotation(kDelay, "5"));
  c.Pod(CpuJob("held", "high", 2).Annotation(kDelay, "5"));
  c.Run();
  EXPECT_THAT(c.Bound(), ElementsAre("free>n"));
  EXPECT_EQ(c.CodeOf("held"), Code::kQueueLimitReached);
  EXPECT_THAT(c.DetailsOf("held"), HasSubstr("pod ns/held: annotation kai.scheduler/"
                                             "preemption-delay: \"5\" is no duration"));
}

// ---- schedulingBackoff

model::PodGroup Once(absl::string_view name, int32_t members, bool failed) {
  model::PodGroup group = MakeGroup("ns", name, "q", members);
  group.scheduling_backoff = model::kTryOnce;
  if (failed) group.scheduling_conditions = {{"default", "1", "{}", "OverLimit", "too much"}};
  return group;
}

TEST(BackoffTest, AWorkloadThatGaveUpIsNotPlacedMakesNoDemandAndWeighsNothing) {
  Cluster c;
  c.Queue("q", 0);
  c.Queue("other", 0);
  c.Node("n", 2);
  c.Group(Once("g", 2, /*failed=*/true));
  for (int i = 0; i < 2; ++i) c.Pod(Member(absl::StrCat("g", i), "g"));
  const CycleResult result = c.Run();
  EXPECT_THAT(c.Bound(), IsEmpty());
  EXPECT_EQ(c.CodeOf("g"), Code::kSchedulingBackoff);
  EXPECT_EQ(c.VerdictOf("g")->subject, "default");
  EXPECT_THAT(c.DetailsOf("g"), HasSubstr("the attempt failed with OverLimit: too much"));
  EXPECT_FALSE(result.waiting.front().wants_nodes);
  for (const QueueNumbers& row : c.engine().Numbers()) {
    EXPECT_EQ(row.requested[model::kGpu], 0);
    EXPECT_EQ(row.fair_share[model::kGpu], 0) << "its queue has no share for it";
  }
  // Its room is there for others at once.
  c.Pod(CpuJob("p0", "other"));
  c.Pod(CpuJob("p1", "other"));
  c.Run();
  EXPECT_EQ(c.Bound().size(), 2u);
}

TEST(BackoffTest, NoPodGivesWayForAWorkloadThatGaveUp) {
  Cluster c;
  c.Queue("low", 0);
  c.Queue("q", 2);
  c.Node("n", 1);
  c.Pod(CpuJob("v", "low").On("n"));
  c.Group(Once("g", 1, /*failed=*/true));
  c.Pod(Member("g0", "g"));
  c.Run();
  EXPECT_THAT(c.Evicted(), IsEmpty());
  model::PodGroup moved = Once("g", 1, /*failed=*/true);
  moved.meta.labels.Set(model::kNodePoolLabel, "b");
  c.Group(moved);
  c.Run();
  EXPECT_THAT(c.Evicted(), ElementsAre("reclaim:v"));
}

TEST(BackoffTest, WhatIsNotReadySaysSoFirst) {
  Cluster c;
  c.Queue("q", 2);
  c.Node("n", 4);
  c.Group(Once("g", 3, /*failed=*/true));
  c.Pod(Member("g0", "g"));
  c.Run();
  EXPECT_EQ(c.CodeOf("g"), Code::kGangIncomplete);
}

TEST(BackoffTest, WhoseTurnDidNotComeWasNotTried) {
  EngineOptions options;
  options.allocate_depth = 1;
  Cluster c(options);
  c.Queue("q", 2);
  c.Group(Once("a", 1, false));
  c.Group(Once("b", 1, false));
  c.Pod(Member("a0", "a").Created(1));
  c.Pod(Member("b0", "b").Created(2));
  const CycleResult result = c.Run();
  int tried = 0;
  for (const Waiting& waiting : result.waiting) tried += waiting.tried ? 1 : 0;
  EXPECT_EQ(result.waiting.size(), 2u);
  EXPECT_EQ(tried, 1);
}

}  // namespace
}  // namespace fairlead::engine
