#include "scheduler/engine/walk_budget.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using verdict::Code;

TEST(WalkBudgetTest, TheFirstHasATurnAndNoneHasOnceTheWorkIsSpent) {
  WalkBudget budget;
  budget.Begin(/*max_walk_work=*/10, /*work=*/100);
  EXPECT_TRUE(budget.TakeTurn(100));
  EXPECT_TRUE(budget.TakeTurn(109));
  EXPECT_FALSE(budget.TakeTurn(110));
  EXPECT_FALSE(budget.TakeTurn(105));
  EXPECT_TRUE(budget.spent());

  WalkBudget none;
  none.Begin(0, 7);
  EXPECT_TRUE(none.TakeTurn(7));
  EXPECT_FALSE(none.TakeTurn(7));
}

TEST(WalkBudgetTest, AWalkThatComesNoFurtherMaySpendTwiceAsMuchUntilOneIsFinished) {
  WalkBudget budget;
  // Each turn costs 5, of which nothing is remembered.
  const auto turns = [&budget](int waiting) {
    budget.Begin(10, 0);
    uint64_t work = 0;
    int count = 0;
    for (; count < waiting && budget.TakeTurn(work); ++count) work += 5;
    budget.End();
    return count;
  };
  EXPECT_EQ(turns(9), 2);
  EXPECT_EQ(turns(9), 2);
  EXPECT_EQ(turns(9), 4);
  EXPECT_EQ(turns(9), 4);
  EXPECT_EQ(turns(9), 8);
  EXPECT_EQ(turns(9), 8);
  EXPECT_EQ(turns(9), 9);
  EXPECT_EQ(turns(9), 2);
}

EngineOptions OneTurnAfterAnother() {
  EngineOptions options;
  options.max_walk_work = 1;
  return options;
}

// Of a size of its own, larger than any node.
model::Pod Huge(int64_t number) {
  return Job(absl::StrCat("huge-", number), "q", 100 + number, number);
}

// What comes to a decision one after another is decided in their order, in cycles that follow at
// once. What had no turn is told nothing, has no demand, and is passed by nothing.
TEST(PutOffTest, WhatIsLeftHasItsTurnInTheNextCycles) {
  Cluster c(OneTurnAfterAnother());
  c.Queue("q", 100);
  c.Queue("other", 100);
  for (const std::string node : {"n1", "n2"}) c.Node(node, 1);
  for (int64_t i = 0; i < 3; ++i) c.Pod(Huge(i));
  c.Pod(Job("small", "q", 1, 10));
  c.Pod(Job("elsewhere", "other", 1, 10).Priority("", -1));

  CycleResult cycle = c.Run(100);
  EXPECT_EQ(cycle.wake_at, model::testing::At(100));
  EXPECT_EQ(c.Bound().size(), 1u);  // of the other queue, whose share is smaller
  int cycles = 1;
  for (; cycle.wake_at <= model::testing::At(100) && cycles < 20; ++cycles) {
    for (const Waiting& waiting : cycle.waiting) {
      if (waiting.tried) continue;
      EXPECT_EQ(waiting.verdict.code, Code::kGated);
      EXPECT_TRUE(waiting.verdict.awaited);
      EXPECT_FALSE(waiting.wants_nodes);
    }
    cycle = c.Run(100);
  }
  EXPECT_GT(cycles, 3);
  EXPECT_LT(cycles, 10);
  EXPECT_THAT(c.Bound(), ElementsAre("small>n2"));
  EXPECT_EQ(c.CodeOf("huge-2"), Code::kInsufficientCapacity);
}

// Many of one size are one turn.
TEST(PutOffTest, WhatIsAlikeWaitsWithTheFirstOfItsKind) {
  Cluster c(OneTurnAfterAnother());
  c.Queue("q", 100);
  c.Node("n1", 1);
  c.Pod(Huge(0));
  for (int64_t i = 0; i < 5; ++i) c.Pod(Job(absl::StrCat("like-", i), "q", 2, 10 + i));
  c.Run(100);
  EXPECT_EQ(c.Result().waiting.size(), 6u);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(c.CodeOf(absl::StrCat("like-", i)), Code::kGated);
  }
  c.Run(100);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(c.CodeOf(absl::StrCat("like-", i)), Code::kInsufficientCapacity);
  }
}

// A limit holds it whether or not it had its turn, and says more.
TEST(PutOffTest, ALimitIsNamedAllTheSame) {
  Cluster c(OneTurnAfterAnother());
  c.Queue("q", 1000);
  c.Queue("tight", 1, 1);
  c.Node("n1", 1);
  c.Pod(Huge(0));
  c.Pod(Job("much", "tight", 2, 0).Priority("", -1));
  c.Pod(Huge(1));
  c.Run(100);
  EXPECT_EQ(c.CodeOf("much"), Code::kQueueLimitReached);
  EXPECT_THAT(c.Bound(), IsEmpty());
}

}  // namespace
}  // namespace fairlead::engine
