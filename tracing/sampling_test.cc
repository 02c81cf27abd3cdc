#include "tracing/sampling.h"

#include <gtest/gtest.h>

namespace fairlead::tracing {
namespace {

constexpr uint64_t kLast = (uint64_t{1} << 56) - 1;

TEST(SamplingTest, NoneAndAll) {
  for (const uint64_t low : {uint64_t{0}, uint64_t{1}, kLast, ~uint64_t{0}}) {
    EXPECT_FALSE(IsSampled({1, low}, 0)) << low;
    EXPECT_FALSE(IsSampled({1, low}, -1)) << low;
    EXPECT_TRUE(IsSampled({1, low}, kSampleAll)) << low;
  }
}

TEST(SamplingTest, TheLast56BitsDecide) {
  EXPECT_TRUE(IsSampled({0, kLast}, 1)) << "the highest are kept first";
  EXPECT_FALSE(IsSampled({0, 0}, kSampleAll - 1)) << "and the lowest last";
  for (const uint64_t low : {uint64_t{12345}, kLast / 2, kLast / 2 + 1, kLast}) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{0xFF} << 56}) {
      EXPECT_EQ(IsSampled({7, low | first}, 500'000), IsSampled({9, low}, 500'000)) << low;
    }
  }
}

TEST(SamplingTest, AHigherRateKeepsWhatALowerOneKeeps) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const TraceId trace = {1, i * (kLast / 1000)};
    bool kept = false;
    for (const int64_t rate : {1, 1'000, 250'000, 500'000, 999'999}) {
      const bool now = IsSampled(trace, rate);
      EXPECT_TRUE(now || !kept) << i << " at " << rate;
      kept = now;
    }
  }
}

TEST(SamplingTest, AsManyAsTheRateSays) {
  int kept = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    if (IsSampled({1, i * (kLast / 10'000)}, 250'000)) ++kept;
  }
  EXPECT_NEAR(kept, 2500, 2);
}

}  // namespace
}  // namespace fairlead::tracing
