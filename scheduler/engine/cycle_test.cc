// Which actions a cycle has, and what persists over cycles: the budget of searches, and back-off
// after bindings that failed.
#include "scheduler/engine/cycle.h"

#include <algorithm>
#include <string>
#include <vector>

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

TEST(MakeActionsTest, SpreadingPartsSwitchesConsolidationOff) {
  EngineOptions options;
  options.spread_parts = true;
  EXPECT_THAT(NamesOf(options), ::testing::Not(::testing::Contains("consolidation")));
}

bool MaySearch(SearchBudget& budget, uint64_t work) {
  return budget.TakeTurn("reclaim", "any", work).has_value();
}

TEST(SearchBudgetTest, BeginsWithTheFirstSearchOfTheCycle) {
  SearchBudget budget;
  budget.Begin(/*max_search_work=*/50);
  const auto first = budget.TakeTurn("reclaim", "first", /*work=*/100);
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->whole);
  EXPECT_EQ(first->end_of_work, 150u);
  const auto second = budget.TakeTurn("preempt", "second", 150);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->whole);
  EXPECT_EQ(second->end_of_work, 150u);
  EXPECT_FALSE(MaySearch(budget, 151));
  budget.End();
  budget.Begin(-1);
  EXPECT_EQ(budget.TakeTurn("reclaim", "first", 7)->end_of_work, 7u);
  EXPECT_TRUE(MaySearch(budget, 7));
  EXPECT_FALSE(MaySearch(budget, 8));
}

TEST(SearchBudgetTest, WhatIsPostponedComesFirstInTheNextCycleOfItsActionAndThenNoMore) {
  SearchBudget budget;
  budget.Begin(10);
  budget.Postpone("reclaim", "late");
  budget.Postpone("preempt", "other");
  budget.Postpone("reclaim", "later");
  EXPECT_THAT(budget.FirstInLine("reclaim"), IsEmpty()) << "not in the same cycle";
  budget.End();
  // A cycle that may not evict neither begins nor ends: what was postponed stays postponed.
  EXPECT_THAT(budget.FirstInLine("reclaim"), ElementsAre("late", "later"));
  EXPECT_THAT(budget.FirstInLine("preempt"), ElementsAre("other"));
  budget.Begin(10);
  EXPECT_THAT(budget.FirstInLine("reclaim"), ElementsAre("late", "later"));
  budget.End();
  EXPECT_THAT(budget.FirstInLine("reclaim"), IsEmpty());
}

// Searches of the first action spend the budget of every cycle, and one of them is always postponed
// too.
TEST(SearchBudgetTest, ASearchOfALaterActionHasItsTurnWhateverTheFirstActionSpends) {
  SearchBudget budget;
  int searched = 0;
  for (int cycle = 0; cycle < 4; ++cycle) {
    budget.Begin(10);
    uint64_t work = 0;
    std::vector<std::string> line = budget.FirstInLine("reclaim");
    for (const char* uid : {"a", "b", "c"}) {
      if (std::find(line.begin(), line.end(), uid) == line.end()) line.push_back(uid);
    }
    for (const std::string& uid : line) {
      if (budget.TakeTurn("reclaim", uid, work).has_value()) {
        work += 100;
      } else {
        budget.Postpone("reclaim", uid);
      }
    }
    const auto turn = budget.TakeTurn("preempt", "late", work);
    if (turn.has_value()) {
      EXPECT_TRUE(turn->whole);
      EXPECT_EQ(turn->end_of_work, work + 10);
      ++searched;
    } else {
      budget.Postpone("preempt", "late");
    }
    budget.End();
  }
  EXPECT_GT(searched, 0);
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
  backoff.Hold("b", now + absl::Seconds(1));
  // It may wait for victims meanwhile.
  backoff.Trim(now + absl::Seconds(121));
  EXPECT_FALSE(backoff.empty());
  backoff.OnFailed("a", now + absl::Seconds(121));
  EXPECT_TRUE(backoff.Holds("a", now + absl::Seconds(122)));
  EXPECT_FALSE(backoff.Holds("a", now + absl::Seconds(123)));
  backoff.Trim(now + absl::Seconds(244));
  EXPECT_TRUE(backoff.empty());
}

// A cycle whose walk was cut short knows nothing new of what had no turn in it.
TEST(SearchBudgetTest, WhatHadNoTurnKeepsItsPlaceInTheLine) {
  SearchBudget budget;
  const auto line = [&budget] { return budget.FirstInLine("reclaim"); };
  budget.Begin(50);
  budget.Postpone("reclaim", "first");
  budget.Postpone("reclaim", "second");
  budget.End();
  budget.Begin(50);
  EXPECT_TRUE(budget.TakeTurn("reclaim", "first", 0).has_value());
  budget.End(/*whole=*/false);
  EXPECT_EQ(line(), std::vector<std::string>{"second"});
  budget.Begin(50);
  budget.End(/*whole=*/true);
  EXPECT_TRUE(line().empty()) << "it waits for no search any more";
}

}  // namespace
}  // namespace fairlead::engine
