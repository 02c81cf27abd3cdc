// By hand: what a time costs at least.
#include "tests/bench/month_bound.h"

#include <algorithm>

#include "base/testing/random.h"
#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"

namespace fairlead::bench {
namespace {

constexpr int64_t kUsd = 1'000'000;

absl::Time Hour(double hours) {
  return absl::FromUnixSeconds(1'800'000'000) + absl::Hours(1) * hours;
}

TEST(MonthBoundTest, APodIsPaidWhileItRunsAndWhileItsNodeBoots) {
  MonthBound bound(absl::Minutes(30));
  bound.Add(Hour(1), 2 * kUsd);
  bound.Add(Hour(3), -2 * kUsd);
  EXPECT_EQ(bound.WithoutBoot(Hour(10)), 4 * kUsd);
  EXPECT_EQ(bound.Total(Hour(10)), 5 * kUsd);
}

TEST(MonthBoundTest, ANodeThatIsKeptThroughAPauseNeedNotBootAgain) {
  MonthBound shorter(absl::Minutes(30)), longer(absl::Minutes(30));
  for (MonthBound* bound : {&shorter, &longer}) {
    bound->Add(Hour(1), 2 * kUsd);
    bound->Add(Hour(2), -2 * kUsd);
  }
  shorter.Add(Hour(2.25), 2 * kUsd);
  longer.Add(Hour(4), 2 * kUsd);
  EXPECT_EQ(shorter.Total(Hour(3)), 5 * kUsd - kUsd / 2 + kUsd / 2) << "paid from 0:30 to 3:00";
  EXPECT_EQ(longer.Total(Hour(5)), 6 * kUsd) << "two boots";
}

TEST(MonthBoundTest, WhatRunsAlreadyIsNotPaidTwice) {
  MonthBound bound(absl::Minutes(30));
  bound.Add(Hour(1), kUsd);
  bound.Add(Hour(2), kUsd);
  bound.Add(Hour(2), kUsd);  // at once with the one before
  bound.Add(Hour(3), -3 * kUsd);
  // 0:30 to 1:30 at 1, to 3:00 at 3.
  EXPECT_EQ(bound.Total(Hour(9)), kUsd + 9 * kUsd / 2);
}

// By the definition, minute by minute.
TEST(MonthBoundTest, IsTheIntegralOfTheMostThatRunsWithinABoot) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    fairlead::testing::Random random(seed);
    const int64_t boot = random.Between(0, 20);
    MonthBound bound(absl::Minutes(boot));
    std::vector<int64_t> rate(200);
    for (int64_t pod = 0; pod < 15; ++pod) {
      const int64_t from = random.Between(30, 150), to = from + random.Between(1, 40);
      for (int64_t t = from; t < to; ++t) rate[static_cast<size_t>(t)] += 60;
    }
    int64_t before = 0, expected = 0;
    for (int64_t t = 0; t < 200; ++t) {
      const int64_t now = rate[static_cast<size_t>(t)];
      if (now != before) bound.Add(Hour(0) + absl::Minutes(t), now - before);
      before = now;
      const auto at = rate.begin() + t;
      expected += *std::max_element(at, at + std::min<int64_t>(boot + 1, 200 - t)) / 60;
    }
    EXPECT_EQ(bound.Total(Hour(0) + absl::Minutes(200)), expected);
  }
}

TEST(MonthBoundTest, AGpuCostsWhatItCostsOnTheCheapestTypeThatHoldsThePod) {
  hook::InstanceType one, four;
  one.name = "one";
  one.gpu_count = 1;
  one.cpu_milli = 4000;
  one.memory_bytes = int64_t{16} << 30;
  one.on_demand_micro_usd = 500'000;
  four = one;
  four.name = "four";
  four.gpu_count = 4;
  four.cpu_milli = 48'000;
  four.on_demand_micro_usd = 4'000'000;
  const hook::Catalog catalog = hook::Catalog::FromTypes({one, four});
  model::ResourceList pod = {{model::kCpuName, 2000}};
  model::Set(pod, model::kGpuName, 1000);
  EXPECT_EQ(LeastRate(catalog, "", pod), 500'000);
  model::Set(pod, model::kCpuName, 8000);
  EXPECT_EQ(LeastRate(catalog, "", pod), 1'000'000) << "a quarter of the four";
  model::Set(pod, model::kGpuName, 2000);
  EXPECT_EQ(LeastRate(catalog, "", pod), 2'000'000);
  EXPECT_EQ(LeastRate(catalog, "A", pod), std::nullopt) << "neither has that model";
  model::Set(pod, model::kGpuName, 8000);
  EXPECT_EQ(LeastRate(catalog, "", pod), std::nullopt);
}

}  // namespace
}  // namespace fairlead::bench
