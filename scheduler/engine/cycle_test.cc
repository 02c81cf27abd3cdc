// Which actions a cycle has, and what persists over cycles: the budget of searches, and back-off
// after bindings that failed.
#include "scheduler/engine/cycle.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const EngineOptions& options) {
  std::vector<std::string> names;
  for (const auto& action : MakeActions(options)) names.emplace_back(action->Name());
  return names;
}

TEST(MakeActionsTest, AllInTheOrderOfKai) {
  EXPECT_THAT(NamesOf({}), ElementsAre("allocate", "consolidation", "reclaim", "preempt",
                                       "reclaim against budgets", "preempt against budgets",
                                       "stalegangeviction", "demand"));
}

TEST(MakeActionsTest, WhatIsSwitchedOffIsNotInTheList) {
  EngineOptions options;
  options.allocate = options.consolidation = options.stale_gangs = options.preempt = false;
  EXPECT_THAT(NamesOf(options),
              ElementsAre("queue up", "reclaim", "reclaim against budgets", "demand"));
  options.reclaim = false;
  EXPECT_THAT(NamesOf(options), ElementsAre("queue up", "demand"));
}

TEST(MakeActionsTest, SpreadingGpusSwitchesConsolidationOff) {
  EngineOptions options;
  options.spread_gpu = true;
  EXPECT_THAT(NamesOf(options), ::testing::Not(::testing::Contains("consolidation")));
}

TEST(SearchBudgetTest, EndsWhereTheWorkOfTheCycleDoes) {
  SearchBudget budget;
  budget.Begin(/*work=*/100, /*max_search_work=*/50);
  EXPECT_EQ(budget.end_of_work(), 150u);
  EXPECT_FALSE(budget.IsSpent(150));
  EXPECT_TRUE(budget.IsSpent(151));
  budget.Begin(7, -1);
  EXPECT_EQ(budget.end_of_work(), 7u);
}

TEST(SearchBudgetTest, TheFirstSearchOfEachCycleHasTheWholeBudget) {
  SearchBudget budget;
  for (int cycle = 0; cycle < 2; ++cycle) {
    budget.Begin(0, 10);
    EXPECT_TRUE(budget.TakeTurn());
    EXPECT_FALSE(budget.TakeTurn());
    budget.End();
  }
}

TEST(SearchBudgetTest, WhatIsPostponedComesFirstInTheNextCycleOfItsActionAndThenNoMore) {
  SearchBudget budget;
  budget.Begin(0, 10);
  budget.Postpone("reclaim", "late");
  budget.Postpone("preempt", "other");
  budget.Postpone("reclaim", "later");
  EXPECT_THAT(budget.FirstInLine("reclaim"), IsEmpty()) << "not in the same cycle";
  budget.End();
  // A cycle that may not evict neither begins nor ends: what was postponed stays postponed.
  EXPECT_THAT(budget.FirstInLine("reclaim"), ElementsAre("late", "later"));
  EXPECT_THAT(budget.FirstInLine("preempt"), ElementsAre("other"));
  budget.Begin(0, 10);
  EXPECT_THAT(budget.FirstInLine("reclaim"), ElementsAre("late", "later"));
  budget.End();
  EXPECT_THAT(budget.FirstInLine("reclaim"), IsEmpty());
}

TEST(BindBackoffTest, EachFailureDoublesTheDelayUpToTheLongest) {
  BindBackoff backoff(absl::Seconds(1), absl::Seconds(3));
  const absl::Time now = absl::FromUnixSeconds(100);
  EXPECT_EQ(backoff.NextEnd(now), absl::InfiniteFuture());
  for (const int64_t delay : {1, 2, 3, 3}) {
    backoff.OnFailed("a", now);
    EXPECT_EQ(backoff.NextEnd(now), now + absl::Seconds(delay));
    EXPECT_TRUE(backoff.Holds("a", now));
    EXPECT_FALSE(backoff.Holds("a", now + absl::Seconds(delay)));
    EXPECT_FALSE(backoff.Holds("b", now));
  }
}

TEST(BindBackoffTest, AFailureOfAPodThatWasHeldHasADelayToo) {
  BindBackoff backoff(absl::Seconds(1), absl::Seconds(60));
  const absl::Time now = absl::FromUnixSeconds(100);
  backoff.Hold("a", now + absl::Seconds(10));
  backoff.Hold("a", now + absl::Seconds(5));
  EXPECT_EQ(backoff.NextEnd(now), now + absl::Seconds(10));
  backoff.OnFailed("a", now + absl::Seconds(10));
  EXPECT_TRUE(backoff.Holds("a", now + absl::Seconds(10)));
}

TEST(BindBackoffTest, AStreakEndsWhereNothingFailedForLong) {
  BindBackoff backoff(absl::Seconds(1), absl::Seconds(60));
  const absl::Time now = absl::FromUnixSeconds(100);
  backoff.OnFailed("a", now);
  backoff.Trim(now + absl::Seconds(3));
  EXPECT_FALSE(backoff.empty());
  backoff.Trim(now + absl::Seconds(4));
  EXPECT_TRUE(backoff.empty());
}

}  // namespace
}  // namespace fairlead::engine
