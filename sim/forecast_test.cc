#include "sim/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/present_testing.h"

namespace fairlead::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeYaml;
using testing::PodYaml;
using testing::PresentOf;
using testing::PresentTime;
using testing::QueueYaml;

ForecastInput InputOf(const std::string& yaml) {
  ForecastInput input;
  input.core = core::KwokOptions();
  input.catalog = &hook::Catalog::BuiltIn();
  input.now = PresentTime();
  input.present = PresentOf(yaml);
  return input;
}

Forecast Play(ForecastInput input) {
  absl::StatusOr<Forecast> forecast = Foresee(std::move(input));
  EXPECT_TRUE(forecast.ok()) << forecast.status();
  return forecast.ok() ? *std::move(forecast) : Forecast();
}

std::string NodeOf(const Forecast& forecast, const std::string& pod) {
  for (const core::RunningRow& row : forecast.end.running) {
    if (row.pod == pod) return row.node;
  }
  return "";
}

std::string CodeOf(const Forecast& forecast, const std::string& workload) {
  for (const core::WaitingRow& row : forecast.end.waiting) {
    if (row.workload == workload) return std::string(verdict::CodeName(row.verdict.code));
  }
  return "";
}

TEST(ForecastTest, WhereNothingHappensItSettlesAtOnceAndChangesNothing) {
  const Forecast forecast = Play(InputOf(QueueYaml("q", 1, 1) + NodeYaml("n", 2) +
                                         PodYaml("a", "q", "n") + PodYaml("b", "q", "")));
  EXPECT_TRUE(forecast.settled);
  EXPECT_LE(forecast.last_change, absl::Seconds(10));
  EXPECT_THAT(forecast.evictions, IsEmpty());
  EXPECT_THAT(forecast.orders, IsEmpty());
  EXPECT_EQ(NodeOf(forecast, "team/a"), "n");
  EXPECT_EQ(CodeOf(forecast, "team/b"), "QueueLimitReached");
}

TEST(ForecastTest, ANodeIsOrderedBootsAndTakesThePodThatWaits) {
  const Forecast forecast = Play(InputOf(QueueYaml("q", 2, 2) + NodeYaml("n", 1) +
                                         PodYaml("a", "q", "n") + PodYaml("b", "q", "")));
  EXPECT_TRUE(forecast.settled);
  ASSERT_EQ(forecast.orders.size(), 1u);
  EXPECT_EQ(NodeOf(forecast, "team/b"), forecast.orders[0].request);
  EXPECT_GE(forecast.last_change, core::KwokOptions().hook.expected_boot);
  EXPECT_GT(forecast.end.price_micro_usd_per_hour, 0);
}

TEST(ForecastTest, TheBoundEndsItAndIsTold) {
  ForecastInput input = InputOf(QueueYaml("q", 2, 2) + PodYaml("b", "q", ""));
  input.bound = absl::Minutes(1);
  const Forecast forecast = Play(std::move(input));
  EXPECT_FALSE(forecast.settled);
  EXPECT_EQ(forecast.orders.size(), 1u);
  EXPECT_EQ(CodeOf(forecast, "team/b"), "NodesRequested");  // its node boots
}

TEST(ForecastTest, AVictimLeavesForAQueueBelowItsQuotaAndItsSuccessorWaits) {
  ForecastInput input =
      InputOf(QueueYaml("rich", 0, -1) + QueueYaml("poor", 1, -1) + NodeYaml("n", 2) +
              PodYaml("a", "rich", "n") + PodYaml("b", "rich", "n") + PodYaml("c", "poor", ""));
  input.core.hook.enabled = false;
  const Forecast forecast = Play(std::move(input));
  EXPECT_TRUE(forecast.settled);
  ASSERT_EQ(forecast.evictions.size(), 1u);
  EXPECT_THAT(forecast.evictions[0].why, HasSubstr("team/c"));
  EXPECT_EQ(NodeOf(forecast, "team/c"), "n");
  EXPECT_NE(CodeOf(forecast, forecast.evictions[0].pod), "");
}

TEST(ForecastTest, ADrainedNodesPodsGoWhereThereIsRoomAndItsBudgetsCount) {
  ForecastInput input = InputOf(QueueYaml("q", 8, 8) + NodeYaml("n", 2) + NodeYaml("other", 1) +
                                PodYaml("a", "q", "n") + PodYaml("b", "q", "n"));
  for (Object& object : input.present.objects) {
    if (auto* node = std::get_if<model::Node>(&object)) {
      node->unschedulable = node->meta.name == "n";
    }
  }
  input.drained = {"n"};
  input.core.hook.enabled = false;
  const Forecast forecast = Play(std::move(input));
  EXPECT_TRUE(forecast.settled);
  EXPECT_EQ(forecast.drained.size(), 2u);
  const std::string placed = NodeOf(forecast, "team/a") == "other" ? "team/b" : "team/a";
  EXPECT_NE(CodeOf(forecast, placed), "");
  EXPECT_EQ(forecast.end.running.size(), 1u);
}

TEST(ForecastTest, TheSameInputGivesTheSameResult) {
  const std::string yaml =
      QueueYaml("q", 2, 2) + NodeYaml("n", 1) + PodYaml("a", "q", "n") + PodYaml("b", "q", "");
  const Forecast one = Play(InputOf(yaml)), two = Play(InputOf(yaml));
  ASSERT_EQ(one.orders.size(), two.orders.size());
  EXPECT_EQ(one.orders[0].request, two.orders[0].request);
  EXPECT_EQ(one.last_change, two.last_change);
}

TEST(ForecastTest, ThePresentMustBeConsistent) {
  const absl::StatusOr<Forecast> forecast = Foresee(InputOf(NodeYaml("n", 1) + NodeYaml("n", 1)));
  EXPECT_TRUE(absl::IsAlreadyExists(forecast.status())) << forecast.status();
}

}  // namespace
}  // namespace fairlead::sim
