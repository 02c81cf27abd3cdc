#include "cmd/simtest/simulation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "sim/world/plan.h"
#include "sim/world/plan_random.h"

namespace fairlead::simtest {
namespace {

sim::world::Plan Parse(absl::string_view text) { return *sim::world::ParsePlan(text); }

std::string Problem(const RunResult& result) {
  return result.failure.has_value()
             ? absl::StrCat(result.failure->invariant, ": ", result.failure->text)
             : "";
}

// One node, one queue, a gang of two and a pod alone.
constexpr char kTame[] = R"(# seed=1 end_ms=40000 hook=off
0 node name=n0 cpu=8000 memory=34359738368 gpu=8
0 queue name=root
0 queue name=q1 parent=root gpu_quota=4
1000 job name=j1 ns=team-a queue=q1 pods=2 min=2 gpu=1 grouping=own run=5
2000 job name=j2 ns=team-b queue=q1 pods=1 gpu=1 grouping=none run=5
)";

TEST(SimulationTest, ATameWorldRunsItsPods) {
  const RunResult result = RunPlan(Parse(kTame), {});
  EXPECT_EQ(Problem(result), "");
  EXPECT_EQ(result.lifetimes, 3);
  EXPECT_GT(result.writes, 0);
}

TEST(SimulationTest, TheSamePlanIsTheSameWorld) {
  const sim::world::Plan plan = sim::world::RandomPlan(5, {"tenants", "watch"});
  EXPECT_EQ(RunPlan(plan, {}).trace_hash, RunPlan(plan, {}).trace_hash);
}

// A replica that dies at its first binding leaves its work to the other one.
TEST(SimulationTest, TheOtherReplicaTakesOver) {
  const RunResult result = RunPlan(
      Parse(absl::StrCat(kTame, "500 crash replica=leader at_write=1 down_ms=30000\n")), {});
  EXPECT_EQ(Problem(result), "");
  EXPECT_EQ(result.lifetimes, 3);
}

// The checks can fail: a world in which nothing ever leads.
TEST(SimulationTest, AWorldWithoutALeaderFails) {
  const RunResult result =
      RunPlan(Parse(absl::StrCat(kTame, "100 partition replica=a for_ms=999999\n",
                                 "100 partition replica=b for_ms=999999\n")),
              {});
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->invariant, "leader");
}

TEST(SimulationTest, AVerbThatIsUnknownIsNoWorld) {
  const RunResult result = RunPlan(Parse(absl::StrCat(kTame, "100 frobnicate replica=a\n")), {});
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->invariant, "simulation");
}

// Worlds that failed once.
TEST(SimulationTest, PlansThatFailedOncePass) {
  for (const auto& entry : std::filesystem::directory_iterator(FAIRLEAD_SIMTEST_PLANS)) {
    if (!entry.is_regular_file()) continue;  // `known`: plans that fail
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(Problem(RunPlan(Parse(text), {})), "") << entry.path();
  }
}

}  // namespace
}  // namespace fairlead::simtest
