// A pod that still terminates long after its grace period holds its capacity, and nothing counts on
// that capacity: no promise, no eviction.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;
using verdict::Code;

// Grace periods of pods that are Deleting() end at 1 s; the threshold is 120 s.
constexpr int64_t kStillReleasing = 120;
constexpr int64_t kStuck = 121;

// The only GPU belongs to a pod that terminates; another pod waits.
void OneWaitsForOne(Cluster& c) {
  c.Queue("q", 8);
  c.Node("n1", 1);
  c.Pod(Job("old", "q", 1, 1).On("n1").Deleting());
  c.Pod(Job("new", "q", 1, 2));
}

state::PodStatus StatusOf(Cluster& c, absl::string_view pod) {
  return c.state().pod(c.state().FindPod("ns", pod)).status;
}

TEST(StuckInReleasingTest, CapacityIsPromisedUntilTheThresholdAndNotAfterIt) {
  Cluster c;
  OneWaitsForOne(c);
  const CycleResult before = c.Run(kStillReleasing);
  EXPECT_THAT(c.Promised(), ElementsAre("new>n1"));
  EXPECT_EQ(c.CodeOf("new"), Code::kWaitingForVictims);
  EXPECT_EQ(before.wake_at, At(kStuck)) << "no event comes when a pod becomes stuck";

  const CycleResult after = c.Run(kStuck);
  EXPECT_THAT(c.Promised(), IsEmpty());
  EXPECT_EQ(c.CodeOf("new"), Code::kInsufficientCapacity);
  ASSERT_EQ(after.waiting.size(), 1u);
  EXPECT_TRUE(after.waiting.front().wants_nodes) << "the hook may buy a node instead";
  EXPECT_EQ(after.wake_at, absl::InfiniteFuture());
  EXPECT_EQ(StatusOf(c, "old"), state::PodStatus::kStuckInReleasing);
}

TEST(StuckInReleasingTest, StaysStuckWhateverElseChangesAndIsGoneInTheEnd) {
  Cluster c;
  OneWaitsForOne(c);
  c.Run(kStuck);
  const uint64_t version = c.state().version();
  c.Pod(Job("old", "q", 1, 1).On("n1").Deleting().Annotation(model::kLastStartAnnotation, "x"));
  EXPECT_EQ(c.state().version(), version) << "no change of what decisions read";
  c.Run(kStuck + 1);
  EXPECT_EQ(c.CodeOf("new"), Code::kInsufficientCapacity);

  c.state().RemovePod("ns", "old", "");
  c.Run(kStuck + 2);
  EXPECT_THAT(c.Bound(), ElementsAre("new>n1"));
}

TEST(StuckInReleasingTest, TheThresholdCountsFromTheEndOfTheGracePeriod) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 1);
  model::Pod old = Job("old", "q", 1, 1).On("n1").Deleting();
  old.meta.deletion = At(3600);  // the API server adds the grace period to the time of the request
  c.Pod(old);
  c.Pod(Job("new", "q", 1, 2));
  EXPECT_EQ(c.Run(3719).wake_at, At(3720));
  EXPECT_THAT(c.Promised(), ElementsAre("new>n1"));
  c.Run(3720);
  EXPECT_THAT(c.Promised(), IsEmpty());
}

TEST(StuckInReleasingTest, WithoutAThresholdNoPodIsEverStuck) {
  EngineOptions options;
  options.stuck_in_releasing_threshold = absl::InfiniteDuration();
  Cluster c(options);
  OneWaitsForOne(c);
  EXPECT_EQ(c.Run(1'000'000).wake_at, absl::InfiniteFuture());
  EXPECT_THAT(c.Promised(), ElementsAre("new>n1"));
}

TEST(StuckInReleasingTest, NoWakeUpIfNothingWaits) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 1);
  c.Pod(Job("old", "q", 1, 1).On("n1").Deleting());
  EXPECT_EQ(c.Run(kStillReleasing).wake_at, absl::InfiniteFuture());
}

TEST(StuckInReleasingTest, IsNoVictimButItsRunningSiblingIs) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 2);
  c.Group(PreemptibleGroup("gang", "q", 2, 1));
  c.Pod(Member("gang-0", "gang").On("n1"));
  c.Pod(Member("gang-1", "gang").On("n1").Deleting());
  c.Pod(PodBuilder("ns", "urgent")
            .Created(3)
            .Queue("q")
            .Gpus(1)
            .Priority("high", 90)
            .Preemptible(false));
  c.Run(kStuck);
  EXPECT_THAT(c.Evicted(), ElementsAre("preempt:gang-0"));
  EXPECT_THAT(c.Promised(), ElementsAre("urgent>n1"));

  c.Pod(PodBuilder("ns", "late")
            .Created(4)
            .Queue("q")
            .Gpus(1)
            .Priority("high", 90)
            .Preemptible(false));
  c.Run(kStuck + 1);
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_THAT(c.Promised(), ElementsAre("urgent>n1"));
}

TEST(StuckInReleasingTest, AShareOfAGpuIsHeldToo) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 1);
  const auto share = [](absl::string_view name, int64_t milli) {
    PodBuilder pod = Job(name, "q", 0);
    model::Pod built = pod;
    built.spec.gpu_share.fraction_milli = milli;
    return built;
  };
  model::Pod old = share("old", 600);
  old.node_name = "n1";
  old.phase = model::PodPhase::kRunning;
  old.meta.deletion = At(1);
  c.Pod(old);
  c.Pod(share("new", 600));
  c.Run(kStillReleasing);
  EXPECT_THAT(c.Promised(), ElementsAre("new>n1"));
  c.Run(kStuck);
  EXPECT_THAT(c.Promised(), IsEmpty());
  EXPECT_THAT(c.Bound(), IsEmpty());
}

}  // namespace
}  // namespace fairlead::engine
