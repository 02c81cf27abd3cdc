#include "sim/world/plan.h"

#include <gtest/gtest.h>

#include "sim/world/plan_random.h"

namespace fairlead::sim::world {
namespace {

TEST(PlanTest, PrintsAndReadsBackTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = PrintPlan(RandomPlan(seed, FaultFamilies()));
    const auto plan = ParsePlan(text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(PrintPlan(*plan), text);
    EXPECT_EQ(plan->seed, seed);
  }
}

TEST(PlanTest, ValuesMayHoldAnything) {
  Operation operation;
  operation.verb = "pod";
  operation.With("name", "a b=c%\n\"x\"");
  const auto plan = ParsePlan(PrintOperation(operation));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->operations[0].Text("name"), "a b=c%\n\"x\"");
}

TEST(PlanTest, NamesTheLineThatIsWrong) {
  const auto plan = ParsePlan("# seed=1\n0 node\nnonsense\n");
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(), "line 3: not \"MILLISECONDS VERB [KEY=VALUE...]\"");
}

TEST(PlanTest, OperationsComeInOrder) {
  const auto plan = ParsePlan("20 b\n10 a\n");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->operations[0].verb, "a");
}

TEST(PlanRandomTest, OneSeedInEightIsTame) {
  for (const auto& operation : RandomPlan(8, FaultFamilies()).operations) {
    EXPECT_TRUE(operation.verb == "node" || operation.verb == "queue" || operation.verb == "job")
        << operation.verb;
  }
}

TEST(PlanRandomTest, FamiliesAreChosenByName) {
  EXPECT_EQ(*ParseFamilies("network,watch"), (std::vector<std::string>{"network", "watch"}));
  EXPECT_EQ(ParseFamilies("all,-clock")->size(), FaultFamilies().size() - 1);
  EXPECT_TRUE(ParseFamilies("none")->empty());
  EXPECT_FALSE(ParseFamilies("weather").ok());
}

}  // namespace
}  // namespace fairlead::sim::world
