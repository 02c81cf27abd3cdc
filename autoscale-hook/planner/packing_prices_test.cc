// The parts of the packer that look for cheap fillings: the linear program, the filling of a node,
// the arithmetic, and what becomes of a plan that the placement refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_testing.h"
#include "autoscale-hook/planner/covering_lp.h"
#include "autoscale-hook/planner/node_amounts.h"
#include "autoscale-hook/planner/node_filler.h"
#include "autoscale-hook/planner/packing.h"

namespace fairlead::hook {
namespace {

using testing::ArithmeticPlacement;

TEST(CoveringLpTest, FindsTheCheapestMix) {
  // 10 pods of a, 6 of b. Alone: a at 10, b at 10. Together on one node at 12.
  CoveringLp lp({10, 6}, {{10, 1}, {10, 1}});
  const int both = lp.Add(12, {{0, 1}, {1, 1}});
  ASSERT_TRUE(lp.Solve(100));
  EXPECT_NEAR(lp.value(), 6 * 12 + 4 * 10, 1e-6);
  EXPECT_NEAR(lp.Amount(both), 6, 1e-6);
  EXPECT_NEAR(lp.Duals()[0], 10, 1e-6);
  EXPECT_NEAR(lp.Duals()[1], 2, 1e-6);
  // Fewer pods: the dual method goes on from there.
  lp.SetCounts({2, 6});
  ASSERT_TRUE(lp.Solve(100));
  EXPECT_NEAR(lp.value(), 2 * 12 + 4 * 10, 1e-6);
  // A filling that covers more than there is.
  lp.Add(11, {{0, 5}, {1, 5}});
  ASSERT_TRUE(lp.Solve(100));
  EXPECT_NEAR(lp.value(), 6 * 11.0 / 5, 1e-6);
}

// By trying every count.
double BestByTrying(const std::vector<NodeFiller::Kind>& kinds, std::vector<int64_t> left, size_t k,
                    double value) {
  if (k == kinds.size()) return value;
  double best = 0;
  for (int64_t n = 0; n <= kinds[k].most; ++n) {
    best = std::max(
        best, BestByTrying(kinds, left, k + 1, value + static_cast<double>(n) * kinds[k].value));
    for (size_t d = 0; d < left.size(); ++d) left[d] -= (*kinds[k].request)[d];
    if (std::any_of(left.begin(), left.end(), [](int64_t amount) { return amount < 0; })) break;
  }
  return best;
}

TEST(NodeFillerTest, FillsAsWellAsTryingEverything) {
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::vector<int64_t>> requests;
    std::vector<NodeFiller::Kind> kinds;
    for (int k = 0; k < 4; ++k) {
      requests.push_back(
          {static_cast<int64_t>(random() % 6), 1 + static_cast<int64_t>(random() % 6)});
    }
    for (int k = 0; k < 4; ++k) {
      kinds.push_back({k, 1.0 + static_cast<double>(random() % 30),
                       1 + static_cast<int64_t>(random() % 3), &requests[static_cast<size_t>(k)]});
    }
    const std::vector<int64_t> capacity = {11, 13};
    const double best = BestByTrying(kinds, capacity, 0, 0);
    NodeFiller filler(kinds, capacity);
    const auto load = filler.Fill(0, 10'000);
    double value = 0;
    std::vector<int64_t> left = capacity;
    for (const auto& [id, count] : load) {
      value += kinds[static_cast<size_t>(id)].value * static_cast<double>(count);
      EXPECT_LE(count, kinds[static_cast<size_t>(id)].most);
      for (size_t d = 0; d < left.size(); ++d)
        left[d] -= count * requests[static_cast<size_t>(id)][d];
    }
    EXPECT_TRUE(std::all_of(left.begin(), left.end(), [](int64_t n) { return n >= 0; }))
        << "seed " << kSeed << ", case " << i;
    EXPECT_NEAR(value, best, 1e-6) << "seed " << kSeed << ", case " << i;
    EXPECT_TRUE(NodeFiller(kinds, capacity).Fill(best, 10'000).empty()) << "case " << i;
  }
}

std::shared_ptr<const model::PodSpec> Spec(int64_t cpu, int64_t share_milli = 0) {
  auto spec = std::make_shared<model::PodSpec>();
  model::Set(spec->requests, model::kCpuName, cpu);
  if (share_milli > 0) spec->gpu_share = {share_milli, 0, 1};
  return spec;
}

TEST(NodeAmountsTest, SharesOfADeviceAreOneAtMost) {
  model::Node node;
  node.allocatable = {{"cpu", 64'000}, {"nvidia.com/gpu", 2000}, {"pods", 110}};
  NodeAmounts amounts({node});
  for (const int64_t share : {600, 400, 300, 0}) {
    EXPECT_TRUE(amounts.AddClass({{Spec(1000, share), 1}}));
  }
  EXPECT_EQ(amounts.Count(0, {}, 0, 100), 2);
  EXPECT_EQ(amounts.Count(0, {}, 1, 100), 4);
  EXPECT_EQ(amounts.Count(0, {{0, 2}}, 1, 100), 2);   // 0.6 and 0.4 on each
  EXPECT_EQ(amounts.Count(0, {{1, 1}}, 0, 100), 2);   // the order of classes: 0.6, 0.6, then 0.4
  EXPECT_EQ(amounts.Count(0, {{0, 1}}, 2, 100), 4);   // 0.6 and 0.3, and three of 0.3
  EXPECT_EQ(amounts.Count(0, {{0, 2}}, 3, 100), 62);  // no GPU is asked for
  auto unknown = std::make_shared<model::PodSpec>();
  model::Set(unknown->requests, "example.com/part", 1);
  EXPECT_FALSE(amounts.AddClass({{unknown, 1}}));
}

// Clouds and tenants may name any amount; UBSan and the memory are the judges.
TEST(NodeAmountsTest, AbsurdAmountsFitWhereTheyAreHad) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  model::Node vast, plain;
  vast.allocatable = {{"cpu", kMax}, {"nvidia.com/gpu", kMax}, {"pods", kMax}};
  plain.allocatable = {{"cpu", 64'000}, {"nvidia.com/gpu", 2000}, {"pods", 110}};
  NodeAmounts amounts({vast, plain});
  EXPECT_TRUE(amounts.AddClass({{Spec(kMax), 1}}));
  EXPECT_TRUE(amounts.AddClass({{Spec(1000, 600), 1}}));
  EXPECT_TRUE(amounts.AddClass({{Spec(kMax, 1000), kMax}}));
  auto gpus = std::make_shared<model::PodSpec>(*Spec(1000));
  model::Set(gpus->requests, "nvidia.com/gpu", kMax);
  EXPECT_TRUE(amounts.AddClass({{gpus, kMax}}));
  EXPECT_EQ(amounts.Count(0, {}, 0, 100), 1);
  EXPECT_EQ(amounts.Count(1, {}, 0, 100), 0);
  EXPECT_EQ(amounts.Count(0, {}, 1, 100), 100);
  EXPECT_EQ(amounts.Count(0, {{0, kMax}}, 1, 100), 0);
  EXPECT_EQ(amounts.Count(1, {{1, 1}}, 1, 100), 1);
  for (int c : {2, 3}) EXPECT_EQ(amounts.Count(1, {}, c, 100), 0) << c;
}

TEST(PackerTest, AbsurdAmountsAndPricesMakeAPlan) {
  constexpr uint64_t kSeed = 5;
  std::mt19937_64 random(kSeed);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> amounts{0,           1,        999,      1000, 64'000,
                                     kMax / 6000, kMax / 2, kMax - 1, kMax};
  const auto any = [&] { return amounts[random() % amounts.size()]; };
  const model::NodePool pool;
  for (int world = 0; world < 15; ++world) {
    std::vector<InstanceType> types(3);
    std::vector<Offer> offers;
    for (InstanceType& type : types) {
      type.name = absl::StrCat("type-", offers.size());
      type.cpu_milli = any();
      type.gpu_count = std::min(any(), kMostGpusOfAMachine);
      type.max_pods = any();
      offers.push_back({&type, &pool, "a", false, any()});
    }
    std::vector<PackClass> classes;
    std::vector<int64_t> counts;
    for (int c = 0; c < 3; ++c) {
      classes.push_back({Spec(any(), random() % 2 == 0 ? 300 : 0)});
      counts.push_back(1 + static_cast<int64_t>(random() % 40));
    }
    ArithmeticPlacement placement;
    Packer packer(classes, offers, placement);
    const Packing packing = packer.Pack(counts, {}, Objective::kPrice);
    for (size_t c = 0; c < counts.size(); ++c) {
      EXPECT_GE(packing.unplaced[c], 0) << "world " << world;
      EXPECT_LE(packing.unplaced[c], counts[c]) << "world " << world;
    }
  }
}

TEST(NodeAmountsTest, WhatDecidesWhetherAPodFits) {
  model::PodSpec spec = *Spec(1000);
  EXPECT_EQ(WhatDecides(spec), FitsBy::kAmounts);
  spec.node_selector.Set("disk", "fast");
  EXPECT_EQ(WhatDecides(spec), FitsBy::kLabels);
  spec.host_ports.push_back({80, "TCP", ""});
  EXPECT_EQ(WhatDecides(spec), FitsBy::kOther);
  spec = *Spec(1000);
  spec.selected_by_others = true;
  EXPECT_EQ(WhatDecides(spec), FitsBy::kOther);
  spec = *Spec(1000);
  spec.gpu_share = {0, 4096, 1};
  EXPECT_EQ(WhatDecides(spec), FitsBy::kOther);
}

// A rule that no amount tells: pods of different CPU requests refuse each other.
class ApartPlacement : public ArithmeticPlacement {
 public:
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override {
    for (const Load& load : already) {
      if (!(*load.spec == *spec)) return 0;
    }
    return ArithmeticPlacement::CountThatFit(node, already, spec, limit);
  }
};

TEST(PackerTest, APlanThatThePlacementRefusesIsMadeAnew) {
  const model::NodePool pool;
  std::vector<Offer> offers;
  for (const InstanceType& type : Catalog::BuiltIn().types()) {
    if (type.gpu_count == 0)
      offers.push_back({&type, &pool, "a", false, *type.on_demand_micro_usd});
  }
  std::vector<PackClass> classes;
  for (const int64_t cpu : {500, 700, 1900}) classes.push_back({Spec(cpu)});
  ArithmeticPlacement together;
  Packer packs(classes, offers, together);
  const Packing mixed = packs.Pack({7, 9, 5}, {}, Objective::kPrice);
  EXPECT_TRUE(std::any_of(mixed.groups.begin(), mixed.groups.end(),
                          [](const NodeGroup& group) { return group.load.size() > 1; }));
  ApartPlacement apart;
  Packer keeps_apart(classes, offers, apart);
  const Packing packing = keeps_apart.Pack({7, 9, 5}, {}, Objective::kPrice);
  ASSERT_TRUE(packing.Complete());
  std::vector<int64_t> placed(3, 0);
  for (const NodeGroup& group : packing.groups) {
    EXPECT_EQ(group.load.size(), 1u);
    for (const auto& [pod_class, count] : group.load) placed[pod_class] += count * group.nodes;
  }
  EXPECT_EQ(placed, (std::vector<int64_t>{7, 9, 5}));
  EXPECT_GE(packing.cost.weighted, mixed.cost.weighted);
}

}  // namespace
}  // namespace fairlead::hook
