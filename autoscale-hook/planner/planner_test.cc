#include "autoscale-hook/planner/planner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/planner_testing.h"
#include "base/testing/environment.h"

namespace fairlead::hook {
namespace {

using fairlead::testing::FromEnvironment;
using testing::ArithmeticPlacement;
using testing::Holds;
using testing::InputOf;
using testing::Item;
using testing::kDollar;
using testing::Random;
using testing::Spec;
using testing::Type;
using verdict::Code;

class PlannerTest : public ::testing::Test {
 protected:
  Plan Run(std::vector<InstanceType> types, const Demand& demand, CapsLeft caps = {},
           int64_t max_nodes = kNoBound) {
    catalog_ = std::make_unique<Catalog>(Catalog::FromTypes(std::move(types)));
    PlanInput input = InputOf(*catalog_, {&pool_}, demand);
    input.caps = std::move(caps);
    input.max_nodes = max_nodes;
    return MakePlan(input, placement_);
  }
  static std::map<std::string, int> Bought(const Plan& plan) {
    std::map<std::string, int> bought;
    for (const PlannedNode& node : plan.nodes) ++bought[node.offer.type->name];
    return bought;
  }
  static CapsLeft Cap(int64_t gpus, int64_t micro_usd = kNoBound) {
    CapsLeft caps;
    caps.gpus = gpus;
    caps.micro_usd_per_hour = micro_usd;
    return caps;
  }
  using Map = std::map<std::string, int>;

  model::NodePool pool_;
  std::unique_ptr<Catalog> catalog_;
  ArithmeticPlacement placement_;
};

TEST_F(PlannerTest, OnePriceListManyShapes) {
  const InstanceType small = Type("g5.xlarge", 4, 16, 1, 1006000);
  const InstanceType big = Type("g5.48xlarge", 192, 768, 8, 16288000);
  const InstanceType p5small = Type("p5.4xlarge", 16, 256, 1, 6880000);
  const InstanceType p5big = Type("p5.48xlarge", 192, 2048, 8, 55040000);
  const InstanceType cpu = Type("m5.xlarge", 4, 16, 0, 192000);
  const InstanceType cpu_dear = Type("m5.dear", 4, 16, 0, 2000000);
  struct Case {
    const char* name;
    std::vector<InstanceType> types;
    Demand demand;
    Map want;
  };
  const std::vector<Case> cases = {
      {"nothing wanted, nothing bought", {small}, {}, {}},
      {"eight small ones are half the price of one big one",
       {small, big},
       {Item("a", Spec(1000, 4, 1), 8)},
       {{"g5.xlarge", 8}}},
      {"eight GPUs in one pod need the big one",
       {small, big},
       {Item("a", Spec(1000, 4, 8), 1)},
       {{"g5.48xlarge", 1}}},
      {"equal price: fewer nodes",
       {p5small, p5big},
       {Item("a", Spec(1000, 4, 1), 8)},
       {{"p5.48xlarge", 1}}},
      {"equal price per GPU, partial last node: the small ones",
       {p5small, p5big},
       {Item("a", Spec(1000, 4, 1), 11)},
       {{"p5.48xlarge", 1}, {"p5.4xlarge", 3}}},
      {"no GPU node for CPU pods",
       {small, cpu},
       {Item("a", Spec(3000, 4, 0), 2)},
       {{"m5.xlarge", 2}}},
      {"a GPU node for CPU pods where it is cheaper",
       {small, cpu_dear},
       {Item("a", Spec(3000, 4, 0), 1)},
       {{"g5.xlarge", 1}}},
      {"CPU pods ride along on GPU nodes",
       {p5big, cpu},
       {Item("gpu", Spec(1000, 4, 8), 1), Item("cpu", Spec(1000, 2, 0), 20)},
       {{"p5.48xlarge", 1}}},
      {"single pods of one class count as one",
       {cpu},
       {Item("a", Spec(1000, 1, 0), 1), Item("b", Spec(1000, 1, 0), 1),
        Item("c", Spec(1000, 1, 0), 1)},
       {{"m5.xlarge", 1}}},
      {"free capacity first",
       {Type("reserved", 4, 16, 1, 0), small},
       {Item("a", Spec(1000, 4, 1), 2)},
       {{"reserved", 2}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Plan plan = Run(c.types, c.demand);
    EXPECT_EQ(Bought(plan), c.want);
    for (const ItemOutcome& outcome : plan.items) EXPECT_EQ(outcome.code, Code::kNodesRequested);
  }
}

TEST_F(PlannerTest, UnknownPriceIsNotOffered) {
  InstanceType unknown = Type("x", 64, 64, 8, 0);
  unknown.on_demand_micro_usd.reset();
  const Plan plan = Run({unknown}, {Item("a", Spec(1000, 1, 1), 1)});
  EXPECT_TRUE(plan.nodes.empty());
  EXPECT_EQ(plan.items[0].code, Code::kNoInstanceTypeFits);
}

TEST_F(PlannerTest, CapsRespectTheOrderOfService) {
  const InstanceType one = Type("one", 16, 256, 1, 7 * kDollar);
  const InstanceType eight = Type("eight", 192, 2048, 8, 55 * kDollar);
  struct Case {
    const char* name;
    Demand demand;
    CapsLeft caps;
    std::vector<Code> want;
    size_t gpus;
  };
  const auto gpu = [](const char* name, int64_t count, bool atomic) {
    return Item(name, Spec(1000, 1, 1), count, atomic);
  };
  const std::vector<Case> cases = {
      {"the first is served",
       {gpu("a", 4, true), gpu("b", 4, true)},
       Cap(4),
       {Code::kNodesRequested, Code::kGpuCapReached},
       4},
      {"a gang is all or nothing", {gpu("a", 5, true)}, Cap(4), {Code::kGpuCapReached}, 0},
      {"single pods are not", {gpu("a", 5, false)}, Cap(4), {Code::kNodesRequested}, 4},
      {"a smaller one behind a gang that cannot be served",
       {gpu("a", 5, true), gpu("b", 2, true)},
       Cap(4),
       {Code::kGpuCapReached, Code::kNodesRequested},
       2},
      {"a cap of zero", {gpu("a", 1, false)}, Cap(0), {Code::kGpuCapReached}, 0},
      {"dollars",
       {gpu("a", 1, true), gpu("b", 1, true)},
       Cap(kNoBound, 12 * kDollar),
       {Code::kNodesRequested, Code::kCostCapReached},
       1},
      {"the cheapest plan has more GPUs than the cap, another one has not",
       {gpu("a", 8, true)},
       Cap(8),
       {Code::kNodesRequested},
       8},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Plan plan = Run({one, eight}, c.demand, c.caps);
    size_t gpus = 0;
    for (const PlannedNode& node : plan.nodes) gpus += node.offer.type->gpu_count;
    EXPECT_EQ(gpus, c.gpus);
    for (size_t i = 0; i < c.want.size(); ++i) EXPECT_EQ(plan.items[i].code, c.want[i]) << i;
  }
}

TEST_F(PlannerTest, GpuCapPrefersFewerGpusOverPrice) {
  // 5 pods: one dear-per-GPU octuple is cheaper than five singles, but the cap leaves five GPUs.
  const Plan plan =
      Run({Type("one", 16, 256, 1, 7 * kDollar), Type("eight", 192, 2048, 8, 20 * kDollar)},
          {Item("a", Spec(1000, 1, 1), 5, true)}, Cap(5));
  EXPECT_EQ(Bought(plan), (Map{{"one", 5}}));
}

TEST_F(PlannerTest, CapsOfModelsAndPoolsSendBuyersElsewhere) {
  CapsLeft caps;
  caps.gpus_by_model["H100"] = 1;
  const std::vector<InstanceType> types = {Type("h", 16, 256, 1, 2 * kDollar),
                                           Type("t", 16, 256, 1, 3 * kDollar, "T4")};
  EXPECT_EQ(Bought(Run(types, {Item("a", Spec(1000, 1, 1), 3, true)}, caps)),
            (Map{{"h", 1}, {"t", 2}}));
  caps.nodes_by_pool[""] = 2;
  const Plan plan = Run(types, {Item("a", Spec(1000, 1, 1), 3, true)}, caps);
  EXPECT_EQ(plan.items[0].code, Code::kInsufficientCapacity);
  EXPECT_TRUE(plan.nodes.empty());
}

TEST_F(PlannerTest, CostCapIsExplainedWithNumbers) {
  const Plan plan = Run({Type("p5.48xlarge", 192, 2048, 8, 55040000)},
                        {Item("a", Spec(1000, 1, 8), 1)}, Cap(kNoBound, 12 * kDollar));
  EXPECT_EQ(plan.items[0].code, Code::kCostCapReached);
  ASSERT_EQ(plan.items[0].details.size(), 1u);
  EXPECT_EQ(
      plan.items[0].details[0],
      "the cheapest nodes for it (1 x p5.48xlarge) cost $55.04 an hour, the cap leaves $12.00");
}

TEST_F(PlannerTest, AtomicItemWithAnImpossibleClassBuysNothing) {
  Demand demand = {Item("a", Spec(1000, 1, 1), 2, true)};
  demand[0].classes.push_back({Spec(1000, 1, 9), 1, 0});
  const Plan plan = Run({Type("eight", 64, 64, 8, kDollar)}, demand);
  EXPECT_TRUE(plan.nodes.empty());
  EXPECT_EQ(plan.items[0].code, Code::kNoInstanceTypeFits);
}

TEST_F(PlannerTest, MinCountOfAnElasticItem) {
  Demand demand = {Item("a", Spec(1000, 1, 1), 6)};
  demand[0].classes[0].min_count = 4;
  EXPECT_EQ(Run({Type("one", 4, 16, 1, kDollar)}, demand, Cap(3)).nodes.size(), 0u);
  EXPECT_EQ(Run({Type("one", 4, 16, 1, kDollar)}, demand, Cap(5)).nodes.size(), 5u);
}

TEST_F(PlannerTest, StepLimitDefersAndLetsOneBigGangThrough) {
  const std::vector<InstanceType> types = {Type("one", 4, 16, 1, kDollar)};
  Plan plan = Run(types, {Item("a", Spec(1000, 1, 1), 6)}, {}, 4);
  EXPECT_EQ(plan.nodes.size(), 4u);
  EXPECT_TRUE(plan.more_next_step);
  plan = Run(types, {Item("a", Spec(1000, 1, 1), 6, true)}, {}, 4);
  EXPECT_EQ(plan.nodes.size(), 6u);
}

TEST_F(PlannerTest, RestingTypesAreToldFromImpossibleOnes) {
  const Catalog catalog = Catalog::FromTypes({Type("one", 4, 16, 1, kDollar)});
  const Demand demand = {Item("a", Spec(1000, 1, 1), 1), Item("b", Spec(1000, 1, 2), 1)};
  const Plan plan = MakePlan(InputOf(catalog, {&pool_}, demand, /*resting=*/{"z1"}), placement_);
  EXPECT_EQ(plan.items[0].code, Code::kInsufficientCapacity);
  EXPECT_EQ(plan.items[1].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(plan.retry_at, testing::kRestsUntil);
}

// Every pod of a served item has its place, no node holds more than fits: checked apart from the
// code.
void CheckPlan(const Plan& plan, const Demand& demand) {
  std::vector<int64_t> placed(demand.size(), 0);
  for (const PlannedNode& node : plan.nodes) {
    EXPECT_FALSE(node.pods_of_item.empty()) << "an empty node was bought";
    for (const auto& [item, pods] : node.pods_of_item) placed[item] += pods;
    if (std::any_of(demand.begin(), demand.end(),
                    [](const auto& d) { return d.classes.size() != 1; })) {
      continue;
    }
    model::ResourceList used;
    for (const auto& [item, pods] : node.pods_of_item) {
      for (const auto& [name, amount] : demand[item].classes[0].spec->requests) {
        model::Add(used, name, amount * pods);
      }
    }
    const model::Node shape = UsableNode(node.offer, "");
    for (const auto& [name, amount] : used) EXPECT_LE(amount, model::Get(shape.allocatable, name));
  }
  for (size_t i = 0; i < demand.size(); ++i) {
    int64_t asked = 0;
    for (const auto& pod_class : demand[i].classes) asked += pod_class.count;
    if (demand[i].atomic) {
      EXPECT_TRUE(placed[i] == 0 || placed[i] == asked);
    }
    EXPECT_EQ(placed[i] > 0, plan.items[i].code == Code::kNodesRequested);
    EXPECT_LE(placed[i], asked);
  }
}

// The optimum by dynamic programming over all counts and all fillings of one node.
int64_t Optimum(const Catalog& catalog, const Demand& demand) {
  std::map<std::vector<int64_t>, int64_t> best;
  std::vector<int64_t> all;
  std::vector<verdict::DemandClass> classes;
  for (const DemandItem& item : demand) {
    classes.push_back(item.classes[0]);
    all.push_back(classes.back().count);
  }
  std::function<int64_t(const std::vector<int64_t>&)> cost = [&](const std::vector<int64_t>& left) {
    if (std::all_of(left.begin(), left.end(), [](int64_t n) { return n == 0; })) return int64_t{0};
    auto known = best.find(left);
    if (known != best.end()) return known->second;
    int64_t lowest = kNoBound;
    for (const InstanceType& type : catalog.types()) {
      std::vector<int64_t> load(left.size(), 0);
      while (true) {  // the next load, as an odometer
        size_t digit = 0;
        while (digit < load.size() && load[digit] == left[digit]) load[digit++] = 0;
        if (digit == load.size()) break;
        ++load[digit];
        if (!Holds(type, classes, load)) continue;
        std::vector<int64_t> rest = left;
        for (size_t c = 0; c < rest.size(); ++c) rest[c] -= load[c];
        const int64_t of_rest = cost(rest);
        if (of_rest != kNoBound) lowest = std::min(lowest, of_rest + *type.on_demand_micro_usd);
      }
    }
    best[left] = lowest;
    return lowest;
  };
  return cost(all);
}

TEST_F(PlannerTest, CloseToTheOptimumOnSmallInstances) {
  constexpr uint64_t kSeed = 20260917;
  constexpr int kInstances = 400;
  Random random(kSeed);
  double worst = 1, sum = 0;
  int exact = 0, compared = 0;
  for (int i = 0; i < kInstances; ++i) {
    std::vector<InstanceType> types;
    for (int64_t t = 0; t < random.Between(2, 5); ++t) {
      const int64_t gpus = random.Between(0, 1) * (int64_t{1} << random.Between(0, 3));
      const int64_t cpus = int64_t{1} << random.Between(2, 6);
      const int64_t price = (cpus * 50000 + gpus * 900000) * random.Between(70, 130) / 100;
      types.push_back(Type(absl::StrCat("t", t), cpus, cpus * random.Between(2, 8), gpus, price));
    }
    Demand demand;
    for (int64_t c = 0; c < random.Between(1, 3); ++c) {
      const int64_t gpus = random.Between(0, 2) == 0 ? random.Between(1, 4) : 0;
      demand.push_back(Item(absl::StrCat("w", c),
                            Spec(random.Between(1, 12) * 500, random.Between(1, 24), gpus),
                            random.Between(1, 5), true));
    }
    const Plan plan = Run(types, demand);
    CheckPlan(plan, demand);
    const bool all = std::all_of(plan.items.begin(), plan.items.end(), [](const ItemOutcome& o) {
      return o.code == Code::kNodesRequested;
    });
    const int64_t optimum = Optimum(*catalog_, demand);
    EXPECT_EQ(all, optimum != kNoBound) << random.Describe() << " instance " << i;
    if (!all || optimum == 0) continue;
    if (plan.price_micro_usd_per_hour > optimum) {
      std::cout << "instance " << i << ": " << FormatDollars(plan.price_micro_usd_per_hour)
                << " for " << FormatDollars(optimum) << "\n";
    }
    const double ratio =
        static_cast<double>(plan.price_micro_usd_per_hour) / static_cast<double>(optimum);
    EXPECT_GE(ratio, 1.0) << "cheaper than the optimum: one of the two is wrong, instance " << i;
    worst = std::max(worst, ratio);
    sum += ratio;
    ++compared;
    exact += plan.price_micro_usd_per_hour == optimum ? 1 : 0;
  }
  std::cout << random.Describe() << ": " << compared << " instances, optimal in " << exact
            << ", mean cost/optimum " << sum / compared << ", worst " << worst << "\n";
  EXPECT_GT(compared, kInstances / 2);
  EXPECT_LE(sum / compared, 1.01);
  EXPECT_LE(worst, 1.25);
}

TEST_F(PlannerTest, ManyPodsFewClassesFewQuestions) {
  // 51,000 single pods of five classes against the built-in catalogue in three zones.
  const Catalog& catalog = Catalog::BuiltIn();
  std::vector<std::shared_ptr<const model::PodSpec>> specs = {
      Spec(500, 1, 0), Spec(2000, 4, 0), Spec(1000, 8, 1), Spec(4000, 32, 1), Spec(8000, 64, 8)};
  Demand demand;
  for (int i = 0; i < 51000; ++i) {
    demand.push_back(
        Item(absl::StrCat("team/p", i), specs[i % 50 == 0 ? 2 + (i / 50) % 3 : i % 2], 1));
  }
  const PlanInput input = InputOf(catalog, {&pool_}, demand);
  const auto start = std::chrono::steady_clock::now();
  const Plan plan = MakePlan(input, placement_);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  CheckPlan(plan, demand);
  std::cout << "51000 pods: " << plan.nodes.size() << " nodes, "
            << FormatDollars(plan.price_micro_usd_per_hour) << " an hour, " << plan.questions
            << " fit questions, " << took.count() << " us\n";
  for (const ItemOutcome& outcome : plan.items) ASSERT_EQ(outcome.code, Code::kNodesRequested);
  EXPECT_LT(placement_.questions, 20000);
  // The same again is the same plan.
  const Plan again = MakePlan(input, placement_);
  ASSERT_EQ(again.nodes.size(), plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    EXPECT_EQ(again.nodes[i].offer.type, plan.nodes[i].offer.type);
    EXPECT_EQ(again.nodes[i].pods_of_item, plan.nodes[i].pods_of_item);
  }
}

TEST_F(PlannerTest, RandomCapsAreNeverPassed) {
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  const auto instances = static_cast<int>(FromEnvironment("FAIRLEAD_PLANNER_INSTANCES", 40));
  for (int i = 0; i < instances; ++i) {
    SCOPED_TRACE(absl::StrCat(random.Describe(), " instance ", i));
    const std::vector<InstanceType> types = {
        Type("a1", 8, 32, 1, kDollar * random.Between(1, 3)),
        Type("a8", 64, 256, 8, kDollar * random.Between(6, 20)),
        Type("b2", 16, 64, 2, kDollar * random.Between(1, 5), "T4"),
        Type("c", 16, 64, 0, kDollar / 2)};
    Demand demand;
    for (int64_t n = random.Between(1, 12); n > 0; --n) {
      demand.push_back(
          Item(absl::StrCat("w", n),
               Spec(random.Between(1, 4) * 1000, random.Between(1, 8), random.Between(0, 2)),
               random.Between(1, 6), random.Between(0, 1) == 0));
    }
    CapsLeft caps = Cap(random.Between(0, 20), random.Between(0, 60) * kDollar);
    caps.gpus_by_model["H100"] = random.Between(0, 12);
    caps.nodes_by_pool[""] = random.Between(0, 12);
    const Plan plan = Run(types, demand, caps);
    CheckPlan(plan, demand);
    int64_t gpus = 0, h100 = 0, cost = 0;
    for (const PlannedNode& node : plan.nodes) {
      gpus += node.offer.type->gpu_count;
      h100 += node.offer.type->gpu_model == "H100" ? node.offer.type->gpu_count : 0;
      cost += node.offer.price_micro_usd_per_hour;
    }
    EXPECT_LE(gpus, caps.gpus);
    EXPECT_LE(h100, caps.gpus_by_model["H100"]);
    EXPECT_LE(cost, caps.micro_usd_per_hour);
    EXPECT_LE(static_cast<int64_t>(plan.nodes.size()), caps.nodes_by_pool[""]);
    EXPECT_EQ(cost, plan.price_micro_usd_per_hour);
  }
}

}  // namespace
}  // namespace fairlead::hook
