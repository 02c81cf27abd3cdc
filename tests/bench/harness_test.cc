// How the benchmark program handles a machine of changing speed.
#include "tests/bench/harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/bench/reference.h"

namespace fairlead::bench {
namespace {

using ::testing::HasSubstr;

TEST(BenchIndexTest, TimesShrinkAndRatesGrowAtIndexOne) {
  EXPECT_DOUBLE_EQ(AtIndexOne(30, "ms", 1.5), 20);
  EXPECT_DOUBLE_EQ(AtIndexOne(30, "us/pod", 1.5), 20);
  EXPECT_DOUBLE_EQ(AtIndexOne(300'000, "placements/s", 1.5), 450'000);
  EXPECT_DOUBLE_EQ(AtIndexOne(100, "MiB", 1.5), 100);
  EXPECT_DOUBLE_EQ(AtIndexOne(7, "", 1.5), 7);
  EXPECT_DOUBLE_EQ(AtIndexOne(7, "writes", 1.5), 7);
}

Metric Of(double value, std::string unit, Better better, std::optional<double> goal) {
  Metric metric;
  metric.name = "m";
  metric.unit = std::move(unit);
  metric.better = better;
  metric.samples = {value};
  metric.goal = goal;
  return metric;
}

TEST(BenchIndexTest, GoalsAreJudgedAtIndexOne) {
  EXPECT_EQ(IsMet(Of(30, "ms", Better::kLower, 25), 1, 1), false);
  EXPECT_EQ(IsMet(Of(30, "ms", Better::kLower, 25), 1.5, 1.5), true) << "slow hour";
  EXPECT_EQ(IsMet(Of(24, "ms", Better::kLower, 25), 0.8, 0.8), false) << "fast hour";
  EXPECT_EQ(IsMet(Of(300'000, "placements/s", Better::kHigher, 500'000), 1.7, 1.7), true);
  EXPECT_EQ(IsMet(Of(30, "ms", Better::kLower, std::nullopt), 1, 1), std::nullopt);
}

TEST(BenchIndexTest, AMachineThatChangedUnderTheBenchmarkCannotBeJudgedBy) {
  EXPECT_EQ(IsMet(Of(30, "ms", Better::kLower, 25), 1, 1.4), std::nullopt);
  EXPECT_EQ(IsMet(Of(30, "ms", Better::kLower, 25), 1.4, 1), std::nullopt);
  EXPECT_EQ(IsMet(Of(30, "MiB", Better::kLower, 25), 1, 1.4), false) << "memory has no pace";
}

TEST(BenchReportTest, WritesIndexAndVerdict) {
  double index = 2;
  Report report([&index] { return index; });
  report.Begin();
  report.Add(Of(30, "ms", Better::kLower, 20));
  report.Add(Of(50, "ms", Better::kLower, 20));
  report.Add(Of(50, "ms", Better::kLower, std::nullopt));
  report.End();
  EXPECT_EQ(report.missed(), 1u);
  const std::string path = ::testing::TempDir() + "bench-results.json";
  ASSERT_TRUE(report.WriteJson(path).ok());
  std::ifstream in(path);
  const std::string json(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(json, HasSubstr(R"("met":true,"index":2,"value_at_index_1":15)"));
  EXPECT_THAT(json, HasSubstr(R"("met":false,"index":2,"value_at_index_1":25)"));
  EXPECT_THAT(json, HasSubstr(R"("met":null)"));
  std::remove(path.c_str());
}

TEST(ReferenceTest, HasAPositiveIndex) {
  const ReferenceTimes times = MeasureReference();
  EXPECT_GT(times.hashing, 0);
  EXPECT_GT(IndexOf(times), 0);
  EXPECT_NEAR(IndexOf({2 * times.hashing, 2 * times.sorting, 2 * times.chasing}) / IndexOf(times),
              2, 1e-9);
}

}  // namespace
}  // namespace fairlead::bench
