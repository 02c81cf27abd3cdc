// Plans against the bound: never below it, and not far above; rivals never below it either.
#include "tests/bench/plan_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/bench/plan_rivals.h"

namespace fairlead::bench {
namespace {

// The bound is lower than a plan by rights only if all three of plan, problem and bound agree on
// what a pod and a node are.
TEST(PlanCostTest, NoPlanCostsLessThanTheBound) {
  int checked = 0;
  for (uint64_t seed = 200; seed < 224; ++seed) {
    const CostDemand demand = GeneratedDemand(seed);
    if (demand.pods.empty() || demand.Pods() > 500) continue;
    ++checked;
    const PlanCost plan = CostOfPlan(demand);
    // Without the plan's cost as an end, so that the bound could be higher.
    BoundEffort effort;
    effort.branches = 20;
    effort.filling_steps = 2'000;
    effort.all_steps = 500'000;
    const PackingBound bound = LowerBound(ProblemOf(demand), effort);
    EXPECT_GT(bound.cost, 0) << "seed " << seed;
    EXPECT_LE(bound.cost, plan.cost) << "seed " << seed;
    EXPECT_LE(bound.cost, OneInstancePerPod(demand)) << "seed " << seed;
    EXPECT_LE(bound.cost, OneNodeGroupAtATime(demand)) << "seed " << seed;
    EXPECT_LE(bound.cost, KarpenterPacking(demand)) << "seed " << seed;
    EXPECT_LE(plan.cost, OneInstancePerPod(demand)) << "seed " << seed;
    // The bound is a poor one here, with so little effort.
    EXPECT_LE(static_cast<double>(plan.cost), 1.15 * static_cast<double>(bound.cost))
        << "seed " << seed;
  }
  EXPECT_GE(checked, 10);
}

TEST(PlanCostTest, TheSameDemandHasTheSamePlan) {
  for (const uint64_t seed : {3, 42}) {
    const PlanCost once = CostOfPlan(GeneratedDemand(seed));
    const PlanCost again = CostOfPlan(GeneratedDemand(seed));
    EXPECT_EQ(once.cost, again.cost);
    EXPECT_EQ(once.nodes, again.nodes);
    EXPECT_EQ(once.questions, again.questions);
  }
}

// 292 pods of 19 kinds with shares of GPUs. By sums of shares alone the best fillings do not fit
// onto devices; a planner that prices pods by such fillings pays 6 % more than the bound.
TEST(PlanCostTest, SharesOfGpusArePlannedByWhatFitsOntoDevices) {
  const CostDemand demand = GeneratedDemand(42);
  BoundEffort effort;
  effort.filling_steps = 20'000;
  const PackingBound bound = LowerBound(ProblemOf(demand), effort);
  const PlanCost plan = CostOfPlan(demand);
  EXPECT_LE(bound.cost, plan.cost);
  EXPECT_LE(static_cast<double>(plan.cost), 1.03 * static_cast<double>(bound.cost));
}

CostDemand SmallDemand(std::vector<CostPods> pods) {
  CostDemand demand = GeneratedDemand(1);  // for the built-in catalogue and the pool
  demand.pods = std::move(pods);
  return demand;
}

TEST(PlanRivalsTest, AsReckonedByHand) {
  // 3.8 CPUs of 4 are left for pods on m5.xlarge: one such pod. m5.2xlarge takes two, at twice the
  // price.
  const CostDemand two = SmallDemand({{3500, 1024, 0, 0, {}, 2, 1}});
  EXPECT_EQ(OneInstancePerPod(two), 2 * 192'000);
  EXPECT_EQ(OneNodeGroupAtATime(two), 2 * 192'000);
  EXPECT_EQ(KarpenterPacking(two), 384'000);
  // A large pod and a small one, which fits beside it: by CPU first, so onto one node.
  const CostDemand mixed = SmallDemand({{600, 256, 0, 0, {}, 1, 1}, {7000, 1024, 0, 0, {}, 1, 1}});
  EXPECT_EQ(OneInstancePerPod(mixed), 96'000 + 384'000);
  EXPECT_EQ(KarpenterPacking(mixed), 384'000);
}

// Whatever fits onto devices is within the amounts of the bound's problem.
TEST(PlanDemandsTest, AmountsOfSharesAllowWhatFitsOntoDevices) {
  constexpr uint64_t kSeed = 29;
  constexpr int64_t kDevices = 4;
  std::mt19937_64 random(kSeed);
  for (int world = 0; world < 200; ++world) {
    std::vector<CostPods> pods;
    for (int64_t device = 0; device < kDevices; ++device) {
      for (int64_t left = 1000; left > 0;) {
        const int64_t share = std::min(left, 10 * (1 + static_cast<int64_t>(random() % 90)));
        pods.push_back({1, 1, share == 1000 ? 1 : 0, share == 1000 ? 0 : share, {}, 1, 1});
        left -= share;
      }
    }
    const CostDemand demand = SmallDemand(pods);
    const PackingProblem problem = ProblemOf(demand);
    const std::vector<const hook::InstanceType*> types = TypesOf(demand);
    const auto type = std::find_if(types.begin(), types.end(),
                                   [](const auto* t) { return t->gpu_count == kDevices; });
    ASSERT_NE(type, types.end());
    const std::vector<int64_t>& capacity =
        problem.types[static_cast<size_t>(type - types.begin())].capacity;
    for (size_t d = 3; d < capacity.size(); ++d) {
      int64_t sum = 0;
      for (const PackingProblem::Class& k : problem.classes) sum += k.request[d];
      EXPECT_LE(sum, capacity[d]) << "seed " << kSeed << ", world " << world;
    }
  }
}

// Two devices have 2,000 thousandths, but 550 and any other of these share no device.
TEST(PlanDemandsTest, AmountsOfSharesRefuseWhatFitsNoDevices) {
  const PackingProblem problem =
      ProblemOf(SmallDemand({{1, 1, 0, 470, {}, 3, 1}, {1, 1, 0, 550, {}, 1, 1}}));
  const int64_t device = problem.classes[0].request[3] * 1000 / 470;
  bool refused = false;
  for (size_t d = 3; d < problem.classes[0].request.size(); ++d) {
    refused =
        refused || 3 * problem.classes[0].request[d] + problem.classes[1].request[d] > 2 * device;
  }
  EXPECT_TRUE(refused);
}

TEST(PlanRivalsTest, SharesOfOneDeviceAreOneAtMost) {
  // Two shares of 0.6 need two devices, by whatever way.
  const CostDemand shares = SmallDemand({{500, 1024, 0, 600, {"Tesla-T4"}, 2, 1}});
  EXPECT_EQ(OneNodeGroupAtATime(shares), 2 * 526'000);
  EXPECT_GE(KarpenterPacking(shares), 2 * 526'000);
  EXPECT_EQ(LowerBound(ProblemOf(shares), {}).cost, 2 * 526'000);
}

}  // namespace
}  // namespace fairlead::bench
