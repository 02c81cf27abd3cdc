#include "cmd/simtest/shrink.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"

namespace fairlead::simtest {
namespace {

using sim::world::Plan;

Plan PlanOf(int operations) {
  Plan plan;
  for (int i = 0; i < operations; ++i) {
    plan.operations.emplace_back().verb = absl::StrCat("verb", i);
  }
  return plan;
}

std::set<std::string> VerbsOf(const Plan& plan) {
  std::set<std::string> verbs;
  for (const auto& operation : plan.operations) verbs.insert(operation.verb);
  return verbs;
}

std::function<bool(int64_t)> AtMost(int64_t max_tries) {
  return [max_tries](int64_t tries) { return tries < max_tries; };
}

TEST(ShrinkTest, LeavesWhatTheFailureTakesAndNothingElse) {
  const std::set<std::string> culprits = {"verb3", "verb17", "verb61"};
  const auto fails = [&](const Plan& plan) {
    const std::set<std::string> verbs = VerbsOf(plan);
    for (const std::string& culprit : culprits) {
      if (!verbs.contains(culprit)) return false;
    }
    return true;
  };
  EXPECT_EQ(VerbsOf(Shrink(PlanOf(64), fails, AtMost(1000))), culprits);
}

TEST(ShrinkTest, KeepsTheOrder) {
  const auto fails = [](const Plan& plan) {
    return plan.operations.size() >= 2 && VerbsOf(plan).contains("verb0");
  };
  const Plan small = Shrink(PlanOf(9), fails, AtMost(1000));
  ASSERT_EQ(small.operations.size(), 2u);
  EXPECT_EQ(small.operations[0].verb, "verb0");
}

TEST(ShrinkTest, StopsAfterSoManyTries) {
  int tries = 0;
  const auto fails = [&](const Plan&) {
    ++tries;
    return false;
  };
  EXPECT_EQ(Shrink(PlanOf(100), fails, AtMost(7)).operations.size(), 100u);
  EXPECT_EQ(tries, 7);
}

TEST(ShrinkTest, APlanThatFailsWithoutAnythingBecomesEmpty) {
  EXPECT_TRUE(
      Shrink(PlanOf(10), [](const Plan&) { return true; }, AtMost(1000)).operations.empty());
}

}  // namespace
}  // namespace fairlead::simtest
