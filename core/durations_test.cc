// How long the stages of a binding take, and plugins in them; and plugins that are measured after a
// decision. Times are those that steps are given.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kCards[] = "nic.io";

class DurationsTest : public NoHookTest {
 protected:
  DurationsTest() {
    Put(MakeDeviceClass(kCards));
    Put(MakeNode("n", 8));
    Put(MakeSlice("n", 2, kCards));
  }
  const DecisionLoop::Stats& stats() { return loop_->stats(); }
  const DecisionLoop::Stats::Attempts& attempts() { return stats().attempts.at("fairlead"); }
  // A claim of that name, and a pod that needs it.
  void Ask(const std::string& name, const std::string& group = "") {
    Put(MakeClaim(name, 1, kCards));
    PodBuilder builder("ns", name);
    builder.Queue("q");
    if (!group.empty()) builder.Group(group);
    model::Pod pod = builder.Build();
    pod.spec.resource_claims = {name};
    Put(pod);
  }
  void AnswerClaim(const StepResult& step, const std::string& name, const absl::Status& status) {
    for (size_t i = 0; i < step.actions.size(); ++i) {
      const auto* write = std::get_if<model::ReserveClaim>(&step.actions[i].what);
      if (write != nullptr && write->name == name) Answer(step, i, status);
    }
  }
  // "plugin point status", with the sum in seconds.
  std::map<std::string, double> Ran() {
    std::map<std::string, double> ran;
    for (const auto& [key, histogram] : stats().plugins.rows()) {
      ran[absl::StrCat(key.plugin, " ", key.point, " ", key.status)] =
          absl::ToDoubleSeconds(histogram.sum);
    }
    return ran;
  }
  template <typename Histogram>
  static int64_t CountOf(const Histogram& histogram) {
    int64_t count = 0;
    for (const int64_t each : histogram.counts) count += each;
    return count;
  }
};

TEST_F(DurationsTest, ARefusedBindingIsAnError) {
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  const StepResult step = Step(1);
  ASSERT_THAT(Of<model::BindPod>(step), SizeIs(1));
  AnswerThe<model::BindPod>(step, absl::InvalidArgumentError("422"));
  Step(3);
  EXPECT_EQ(attempts().error_us.sum, 2'000'000);
  EXPECT_EQ(attempts().refused_us.sum, 2'000'000);
  EXPECT_EQ(CountOf(attempts().scheduled_us), 0);
  EXPECT_EQ(CountOf(attempts().unprepared_us), 0);
  EXPECT_EQ(stats().pods_backing_off, 1u);
}

TEST_F(DurationsTest, WhatAPluginCannotReserveIsAnErrorOfPreBind) {
  Ask("p");
  const StepResult step = Step(1);
  AnswerClaim(step, "p", absl::PermissionDeniedError("403"));
  Step(4);
  EXPECT_EQ(attempts().unprepared_us.sum, 3'000'000);
  EXPECT_EQ(CountOf(attempts().prepared_us), 0);
  EXPECT_EQ(CountOf(attempts().error_us), 0) << "no binding was sent";
  EXPECT_EQ(Ran(), (std::map<std::string, double>{{"DynamicResources PreBind Error", 3}}));
}

TEST_F(DurationsTest, APlainPodHasNoPreBind) {
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  const StepResult step = Step(1);
  EXPECT_EQ(loop_->Count().assumed_pods, 1);
  AnswerAll(step);
  Step(2);
  EXPECT_EQ(attempts().scheduled_us.sum, 1'000'000);
  EXPECT_EQ(attempts().bound_us.sum, 1'000'000);
  EXPECT_EQ(CountOf(attempts().prepared_us), 0);
  EXPECT_EQ(CountOf(stats().permit_granted_us), 0);
  EXPECT_THAT(Ran(), IsEmpty());
  EXPECT_EQ(loop_->Count().assumed_pods, 0);
  EXPECT_EQ(stats().pods_added, 1u);
}

TEST_F(DurationsTest, OfAGangTheFirstThatIsReadyWaitsAtPermit) {
  Put(MakeGroup("ns", "gang", "q", 2));
  Ask("a", "gang");
  Ask("b", "gang");
  const StepResult step = Step(1);
  ASSERT_THAT(Of<model::ReserveClaim>(step), SizeIs(2));
  AnswerClaim(step, "a", absl::OkStatus());
  EXPECT_THAT(Of<model::BindPod>(Step(3)), IsEmpty());
  AnswerClaim(step, "b", absl::OkStatus());
  const StepResult both = Step(8);
  ASSERT_THAT(Of<model::BindPod>(both), SizeIs(2));
  AnswerAll(both);
  Step(9);
  EXPECT_EQ(CountOf(stats().permit_granted_us), 1) << "b did not wait";
  EXPECT_EQ(stats().permit_granted_us.sum, 5'000'000);
  EXPECT_EQ(Ran(), (std::map<std::string, double>{{"DynamicResources PreBind Success", 2 + 7}}));
  EXPECT_EQ(attempts().prepared_us.sum, 9'000'000);
  EXPECT_EQ(attempts().scheduled_us.sum, 16'000'000);
  EXPECT_EQ(attempts().bound_us.sum, 2'000'000);
}

TEST_F(DurationsTest, WhoseGangFailsHasWaitedInVain) {
  Put(MakeGroup("ns", "gang", "q", 2));
  Ask("a", "gang");
  Ask("b", "gang");
  const StepResult step = Step(1);
  AnswerClaim(step, "a", absl::OkStatus());
  Step(2);
  AnswerClaim(step, "b", absl::PermissionDeniedError("403"));
  Step(6);
  EXPECT_EQ(CountOf(stats().permit_denied_us), 1);
  EXPECT_EQ(stats().permit_denied_us.sum, 4'000'000);
}

// ---- plugins that are measured after a decision

// A clock on which every call takes so long.
PluginProbe::Steady Ticking(absl::Duration tick) {
  return [now = absl::ZeroDuration(), tick]() mutable { return now += tick; };
}

TEST_F(DurationsTest, FiltersAndScoresAreMeasuredAboutWhatWaitsAndWhatWasPlaced) {
  PluginProbe probe;
  loop_->Probe(probe, Ticking(absl::Milliseconds(1)));
  EXPECT_EQ(probe.turns(), 0u) << "nothing was decided";
  for (int i = 0; i < 20; ++i) Put(MakeNode(absl::StrCat("other-", i), 0));
  Put(PodBuilder("ns", "large").Queue("q").Gpus(9).Build());
  Put(PodBuilder("ns", "small").Queue("q").Gpus(1).Build());
  ASSERT_THAT(Of<model::BindPod>(Step(1)), SizeIs(1));
  std::set<std::string> seen;
  for (int i = 0; i < 12; ++i) loop_->Probe(probe, Ticking(absl::Milliseconds(1)));
  EXPECT_EQ(probe.turns(), 12u);
  for (const auto& [key, histogram] : probe.durations().rows()) {
    seen.insert(absl::StrCat(key.plugin, " ", key.point, " ", key.status));
    EXPECT_EQ(histogram.sum, absl::Milliseconds(1) * CountOf(histogram)) << key.plugin;
  }
  EXPECT_THAT(seen, Contains("NodeResourcesFit Filter Success")) << "of the small pod";
  EXPECT_THAT(seen, Contains("NodeResourcesFit Filter Unschedulable"));
  EXPECT_THAT(seen, Not(Contains("VolumeBinding Filter Success"))) << "it does not apply";
  EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), [](const std::string& each) {
    return each.find(" Score Success") != std::string::npos;
  }));
  EXPECT_EQ(loop_->CheckConsistency(), "");
}

TEST(PluginHistogramTest, BoundsGrowByHalf) {
  PluginHistogram histogram;
  for (const int64_t us : {1, 10, 11, 15, 16}) histogram.Add(absl::Microseconds(us));
  histogram.Add(absl::Seconds(1));
  EXPECT_EQ(histogram.counts[0], 2);
  EXPECT_EQ(histogram.counts[1], 2);
  EXPECT_EQ(histogram.counts[2], 1);
  EXPECT_EQ(histogram.counts[PluginHistogram::kBounds], 1);
  EXPECT_NEAR(PluginHistogram::BoundSeconds(19), 0.0222, 0.0001);
}

}  // namespace
}  // namespace fairlead::core::testing
