// What pods' annotations and a PodGroup's status and annotations say of delays and of the past.
#include <functional>

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using testing::OurPods;

constexpr char kDelay[] = "kai.scheduler/preemption-delay";

class GroupPastTest : public ::testing::Test {
 protected:
  const Workload& Group() { return state_.workload(state_.FindGroup("ns", "g")); }
  const Workload& Lone(absl::string_view pod) {
    return state_.workload(state_.pod(state_.FindPod("ns", pod)).workload);
  }
  ClusterState state_{OurPods()};
};

struct DelayCase {
  const char* text;
  int64_t seconds;
  const char* warning;  // of a pod ns/p
};

TEST_F(GroupPastTest, ADelayThatIsNoneIsIgnoredWithAWarningAndHarmsNothing) {
  const DelayCase cases[] = {
      {"", 0, ""},
      {"0", 0, ""},
      {"90s", 90, ""},
      {"1h30m", 5400, ""},
      {"5", 0, "\"5\" is no duration; it is ignored"},
      {"soon", 0, "\"soon\" is no duration; it is ignored"},
      {"inf", 0, "\"inf\" is no duration; it is ignored"},
      {"-3m", 0, "\"-3m\" is negative; it is ignored"},
  };
  for (const DelayCase& c : cases) {
    state_.UpsertPod(PodBuilder("ns", "p").Annotation(kDelay, c.text));
    const Workload& workload = Lone("p");
    EXPECT_EQ(workload.details->preemption_delay, absl::Seconds(c.seconds)) << c.text;
    EXPECT_EQ(workload.details->invalid, "") << c.text;
    const std::string where = absl::StrCat("pod ns/p: annotation ", kDelay, ": ");
    EXPECT_EQ(workload.details->warning, *c.warning == '\0' ? "" : where + c.warning) << c.text;
    const absl::Time end = c.seconds == 0 ? absl::InfinitePast() : At(c.seconds);
    EXPECT_EQ(workload.PreemptionDelayEnd(), end) << c.text;
  }
}

TEST_F(GroupPastTest, AStalenessGraceMayBeNegativeAndMustBeFinite) {
  PodBuilder pod("ns", "p");
  state_.UpsertPod(pod.Annotation(model::kStalenessGraceAnnotation, "-1s"));
  EXPECT_EQ(Lone("p").details->staleness_grace, absl::Seconds(-1));
  EXPECT_EQ(Lone("p").details->warning, "");
  state_.UpsertPod(pod.Annotation(model::kStalenessGraceAnnotation, "inf"));
  EXPECT_EQ(Lone("p").details->staleness_grace, std::nullopt);
  EXPECT_NE(Lone("p").details->warning, "");
}

TEST_F(GroupPastTest, TheGroupsDelayWinsOverItsPods) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  state_.UpsertPodGroup(group);
  state_.UpsertPod(PodBuilder("ns", "p").Group("g").Annotation(kDelay, "60s").Created(5));
  EXPECT_EQ(Group().details->preemption_delay, absl::Seconds(60));
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(60)) << "from the creation of the group";
  group.preemption_delay = absl::Seconds(200);
  EXPECT_TRUE(state_.UpsertPodGroup(group).workloads);
  EXPECT_EQ(Group().details->preemption_delay, absl::Seconds(200));
  // Of 0 and less it is none, and still its own word.
  group.preemption_delay = absl::Seconds(-1);
  state_.UpsertPodGroup(group);
  EXPECT_EQ(Group().PreemptionDelayEnd(), absl::InfinitePast());
}

TEST_F(GroupPastTest, TheDelayBeginsAnewWithTheLastEviction) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.preemption_delay = absl::Seconds(60);
  group.meta.annotations.Set(model::kLastEvictionAnnotation, "lately");
  state_.UpsertPodGroup(group);
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(60));
  EXPECT_EQ(Group().details->warning,
            "PodGroup ns/g: annotation kai.scheduler/last-eviction-timestamp: \"lately\" is no "
            "RFC 3339 time; it is ignored");
  // 1,000 seconds after At(0).
  group.meta.annotations.Set(model::kLastEvictionAnnotation, "2023-11-14T22:30:00Z");
  EXPECT_TRUE(state_.UpsertPodGroup(group).workloads);
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(1060));
  EXPECT_EQ(Group().details->warning, "");
  state_.SetLastEviction(Group().id, At(2000));
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(2060));
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any()) << "the annotation is not written yet";
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(2060));
  // An eviction before it was made is of another group of this name.
  group.meta.annotations.Set(model::kLastEvictionAnnotation, "2020-01-01T00:00:00Z");
  state_.UpsertPodGroup(group);
  EXPECT_EQ(Group().PreemptionDelayEnd(), At(60));
}

// What comes after the one attempt of a group has failed, said here before its status can.
TEST_F(GroupPastTest, AFailedAttemptStandsUntilTheGroupIsMovedOrTheMarkIsTakenAway) {
  using Change = std::function<void(model::PodGroup&)>;
  const auto marked = [](model::PodGroup& g) {
    g.scheduling_conditions = {{"default", "5", "{}", "R", "m"}};
  };
  struct {
    const char* title;
    std::vector<Change> changes;
    bool stands;
  } const cases[] = {
      {"an echo from before", {[](auto& g) { g.schedulability_hash = "h"; }}, true},
      {"another field", {[](auto& g) { g.min_member = 2; }}, true},
      {"the echo", {marked}, true},
      {"moved", {[](auto& g) { g.meta.labels.Set(model::kNodePoolLabel, "b"); }}, false},
      {"moved after the echo",
       {marked, [](auto& g) { g.meta.labels.Set(model::kNodePoolLabel, "b"); }},
       false},
      {"may be tried for ever", {[](auto& g) { g.scheduling_backoff = -1; }}, false},
      {"the mark is taken away", {marked, [](auto& g) { g.scheduling_conditions.clear(); }}, false},
      {"made anew", {[](auto& g) { g.meta.uid = "other"; }}, false},
  };
  for (const auto& c : cases) {
    ClusterState state{OurPods()};
    model::PodGroup group = MakeGroup("ns", "g", "q", 1);
    group.scheduling_backoff = model::kTryOnce;
    state.UpsertPodGroup(group);
    state.UpsertPod(PodBuilder("ns", "p").Group("g"));
    const WorkloadId id = state.FindGroup("ns", "g");
    EXPECT_FALSE(state.workload(id).GaveUp());
    state.SetFailedAttempt(id, {"default", "R", "m"});
    EXPECT_TRUE(state.workload(id).GaveUp());
    for (const Change& change : c.changes) {
      change(group);
      state.UpsertPodGroup(group);
    }
    EXPECT_EQ(state.workload(id).GaveUp(), c.stands) << c.title;
  }
}

TEST_F(GroupPastTest, AMarkReadAfterARestartCountsUnlessSomethingRuns) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.scheduling_backoff = model::kTryOnce;
  group.scheduling_conditions = {{"default", "5", "{}", "R", "m"}};
  state_.UpsertPodGroup(group);
  state_.UpsertPod(PodBuilder("ns", "p").Group("g"));
  EXPECT_TRUE(Group().GaveUp());
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any());
  state_.UpsertNode(model::testing::MakeNode("n", 1));
  state_.UpsertPod(PodBuilder("ns", "runs").Group("g").On("n"));
  EXPECT_FALSE(Group().GaveUp());
}

}  // namespace
}  // namespace fairlead::state
