#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/inline_string.h"
#include "base/shared.h"
#include "base/shared_pool.h"
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

TEST(SharedTest, IsCopiedByTheFirstToChangeIt) {
  Shared<std::string> nothing;
  EXPECT_FALSE(nothing);
  Shared<std::string> a(std::string("a"));
  Shared<std::string> b = a;
  EXPECT_TRUE(a.IsSameAs(b));
  EXPECT_FALSE(a.IsAlone());
  b.Own() = "b";
  EXPECT_EQ(*a, "a");
  EXPECT_EQ(*b, "b");
  EXPECT_TRUE(a.IsAlone());
  const std::string* where = &*a;
  a.Own() += "a";
  EXPECT_EQ(&*a, where) << "nothing else had it";
  nothing.Own() = "something";
  EXPECT_EQ(*nothing, "something");
  a = a;
  EXPECT_EQ(*a, "aa");
}

TEST(SharedTest, NullHoldsNothing) {
  Shared<std::string> text(std::string("a"));
  EXPECT_TRUE(text != nullptr);
  const Shared<std::string> copy = text;
  text = nullptr;
  EXPECT_TRUE(text == nullptr);
  EXPECT_EQ(*copy, "a");
  EXPECT_TRUE(copy.IsAlone());
}

TEST(SharedPoolTest, EqualValuesAreOne) {
  SharedPool<std::string> pool;
  const Shared<std::string> a = pool.Intern("a");
  EXPECT_TRUE(pool.Intern("a").IsSameAs(a));
  EXPECT_FALSE(pool.Intern("b").IsSameAs(a));
  EXPECT_EQ(*a, "a");
}

TEST(SharedPoolTest, ValuesThatNothingHoldsAreDropped) {
  SharedPool<std::string> pool;
  const Shared<std::string> held = pool.Intern("held");
  for (int i = 0; i < 100'000; ++i) pool.Intern(std::to_string(i));
  EXPECT_LE(pool.size(), 1024u);
  EXPECT_TRUE(pool.Intern("held").IsSameAs(held));
}

TEST(SharedPoolTest, WhatIsReleasedByItsLastHolderIsDropped) {
  SharedPool<std::string> pool;
  Shared<std::string> a = pool.Intern("a");
  Shared<std::string> again = pool.Intern("a");
  pool.Release(std::move(a));
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_TRUE(pool.Intern("a").IsSameAs(again));
  pool.Release(std::move(again));
  EXPECT_EQ(pool.size(), 0u);
  pool.Release(nullptr);
  // One that is equal, but not of the pool.
  const Shared<std::string> b = pool.Intern("b");
  const Shared<std::string> equal{std::string("b")}, copy = equal;
  pool.Release(equal);
  EXPECT_TRUE(pool.Intern("b").IsSameAs(b));
}

TEST(InlineStringTest, IsTheStringThatItWasMadeOf) {
  const std::string high("\xff\x01", 2);
  const std::string nul("a\0b", 3);
  const std::vector<std::string> texts = {"",
                                          "a",
                                          nul,
                                          "b",
                                          high,
                                          std::string(InlineString::kInline, 'x'),
                                          std::string(InlineString::kInline + 1, 'x'),
                                          std::string(1000, 'x'),
                                          std::string(1000, 'x') + "y"};
  for (const std::string& a : texts) {
    for (const std::string& b : texts) {
      InlineString left{a};
      InlineString right{b};
      EXPECT_EQ(left == right, a == b);
      EXPECT_EQ(left < right, a < b) << a << " and " << b;
      const InlineString copy = left;
      left = right;
      EXPECT_EQ(left.view(), b);
      right = std::move(left);
      EXPECT_EQ(right.view(), b);
      right = copy;
      EXPECT_EQ(right.view(), a);
      right = absl::string_view(b);
      EXPECT_EQ(right.view(), b);
      const InlineString moved = std::move(right);
      EXPECT_EQ(moved.view(), b);
      EXPECT_EQ(copy.view(), a);
    }
  }
}

TEST(BoxedTest, EachCopyHasItsOwn) {
  Boxed<std::string> a(std::string("a"));
  Boxed<std::string> b = a;
  b.Own() = "b";
  EXPECT_EQ(*a, "a");
  EXPECT_EQ(*b, "b");
  EXPECT_FALSE(a == b);
}

TEST(BoxedTest, ADefaultValueTakesNothing) {
  Boxed<std::string> a, b;
  EXPECT_EQ(&*a, &*b) << "one for all of them";
  a.Own() = "";
  EXPECT_NE(&*a, &*b);
  EXPECT_TRUE(a == b);
  a.Shrink();
  EXPECT_EQ(&*a, &*b);
  a.Set("x");
  EXPECT_EQ(*a, "x");
  a.Set("");
  EXPECT_EQ(&*a, &*b);
}

}  // namespace
}  // namespace fairlead
