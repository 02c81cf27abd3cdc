#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "gtest/gtest.h"

namespace fairlead {
namespace {

TEST(CheckDeathTest, SaysConditionMessageAndDecision) {
  ScopedDecisionId id("cycle 7");
  EXPECT_DEATH(FAIRLEAD_CHECK(1 == 2, "numbers changed"),
               "1 == 2: numbers changed \\(decision: cycle 7\\)");
}

TEST(ScopedDecisionIdTest, RestoresTheOuterOne) {
  ScopedDecisionId outer("outer");
  {
    ScopedDecisionId inner("inner");
  }
  EXPECT_DEATH(FAIRLEAD_CHECK(false, ""), "decision: outer");
}

TEST(FakeClockTest, MovesOnlyWhenAdvanced) {
  FakeClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Steady(), absl::Seconds(5));
}

TEST(StableHashTest, KnownValueAndBoundaries) {
  EXPECT_NE(StableHash().Add("ab").Add("c").value(), StableHash().Add("a").Add("bc").value());
  EXPECT_EQ(StableHash().Hex(), "cbf29ce484222325");  // FNV-1a offset basis
  EXPECT_EQ(StableHash().Add("pod").Hex(), StableHash().Add("pod").Hex());
}

}  // namespace
}  // namespace fairlead
