#include "scheduler/state/numa_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace fairlead::state {
namespace {

using model::ContainerRequests;
using model::NumaPolicy;
using model::NumaScope;
using model::ResourceList;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGpu[] = "nvidia.com/gpu";

class NumaZonesTest : public ::testing::Test {
 protected:
  // One zone for each list.
  std::unique_ptr<NumaNode> Node(NumaPolicy policy, const std::vector<ResourceList>& zones,
                                 NumaScope scope = NumaScope::kPod) {
    model::NodeResourceTopology topology;
    topology.policy = policy;
    topology.scope = scope;
    for (size_t i = 0; i < zones.size(); ++i) {
      topology.zones.push_back({absl::StrCat("node-", i), zones[i], zones[i]});
    }
    return MakeNumaNode(topology, names_);
  }
  std::shared_ptr<const AlignedUnits> Units(const ResourceList& requests, bool guaranteed = true,
                                            std::vector<ContainerRequests> containers = {}) {
    model::PodSpec spec;
    spec.requests = requests;
    spec.guaranteed = guaranteed;
    spec.containers = std::move(containers);
    return AlignedUnitsOf(spec, names_);
  }
  // "0: cpu=2000, 1: cpu=1000"; "refused".
  std::string Pick(const NumaNode& node, const AlignedUnits& units,
                   ZoneCapacity capacity = ZoneCapacity::kNow) {
    const std::optional<ZonePick> pick = PickZones(node, units, capacity);
    EXPECT_EQ(FitsZones(node, units, capacity), pick.has_value() || !node.Refuses());
    if (!pick.has_value()) return "refused";
    std::string text;
    for (const ZoneShare& share : *pick) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", share.zone, ":");
      for (const auto& [resource, amount] : share.amounts) {
        absl::StrAppend(&text, " ", names_.Name(resource), "=", amount);
      }
    }
    return text;
  }

  model::ResourceNames names_;
};

TEST_F(NumaZonesTest, WhatIsAligned) {
  // Burstable: devices alone. A part of a CPU is shared.
  EXPECT_EQ(Units({{"cpu", 2000}, {"memory", 5}}, /*guaranteed=*/false), nullptr);
  EXPECT_EQ(Units({{"cpu", 2500}}), nullptr);
  EXPECT_EQ(Units({{"ephemeral-storage", 5}}), nullptr);
  const auto units = Units({{"cpu", 2000}, {"hugepages-2Mi", 4}, {"memory", 5}, {kGpu, 1000}});
  EXPECT_EQ(units->pod.ToList(names_),
            (ResourceList{{"cpu", 2000}, {"hugepages-2Mi", 4}, {"memory", 5}, {kGpu, 1000}}));
  EXPECT_EQ(Units({{"cpu", 2000}, {kGpu, 1000}}, /*guaranteed=*/false)->pod.ToList(names_),
            (ResourceList{{kGpu, 1000}}));
}

TEST_F(NumaZonesTest, OfSeveralContainers) {
  using Role = ContainerRequests::Role;
  const auto units = Units({{"cpu", 6500}}, true,
                           {{Role::kInit, {{"cpu", 5000}}},
                            {Role::kSidecar, {{"cpu", 1000}}},
                            {Role::kMain, {{"cpu", 2000}}},
                            {Role::kMain, {{"cpu", 500}}}});
  // Whole CPUs: max(init 5, sidecar 1 + main 2).
  EXPECT_EQ(units->pod.ToList(names_), (ResourceList{{"cpu", 5000}}));
  ASSERT_EQ(units->together.size(), 3u);
  EXPECT_EQ(units->together[2].ToList(names_), ResourceList());
  EXPECT_EQ(units->first.size(), 1u);
  const auto node =
      Node(NumaPolicy::kSingleNumaNode, {{{"cpu", 4000}}, {{"cpu", 4000}}}, NumaScope::kContainer);
  EXPECT_EQ(Pick(*node, *units), "refused");  // the init container
  const auto wide =
      Node(NumaPolicy::kSingleNumaNode, {{{"cpu", 2000}}, {{"cpu", 5000}}}, NumaScope::kContainer);
  // The init container has node-1 before the others come.
  EXPECT_EQ(Pick(*wide, *units), "0: cpu=1000, 1: cpu=2000");
}

TEST_F(NumaZonesTest, SingleNumaNodeTakesTheFirstThatHasAll) {
  const auto node = Node(NumaPolicy::kSingleNumaNode,
                         {{{"cpu", 4000}, {kGpu, 0}}, {{"cpu", 4000}, {kGpu, 2000}}});
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 3000}})), "0: cpu=3000");
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 3000}, {kGpu, 1000}})),
            absl::StrCat("1: cpu=3000 ", kGpu, "=1000"));
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 5000}})), "refused");
  // What zones do not report constrains nothing.
  EXPECT_EQ(Pick(*node, *Units({{"memory", 1}})), "");
}

TEST_F(NumaZonesTest, RestrictedWantsTheFewestZonesThatCouldDo) {
  const auto node =
      Node(NumaPolicy::kRestricted, {{{"cpu", 4000}}, {{"cpu", 4000}}, {{"cpu", 4000}}});
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}})), "0: cpu=4000, 1: cpu=2000");
  node->zones[0].used.Add(model::kCpu, 3000);
  // Two of three are preferred, and two have it.
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}})), "1: cpu=4000, 2: cpu=2000");
  node->zones[1].used.Add(model::kCpu, 3000);
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}})), "refused");  // three would do
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}}), ZoneCapacity::kEmpty), "0: cpu=4000, 1: cpu=2000");
  node->zones[1].releasing.Add(model::kCpu, 2000);
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}}), ZoneCapacity::kFuture),
            "1: cpu=3000, 2: cpu=3000");
  node->zones[2].pipelined.Add(model::kCpu, 1000);
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 6000}}), ZoneCapacity::kFuture),
            "1: cpu=3000, 2: cpu=3000");
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 7000}}), ZoneCapacity::kFuture), "refused");
}

TEST_F(NumaZonesTest, RestrictedRefusesResourcesThatPreferDifferentNumbers) {
  const auto node =
      Node(NumaPolicy::kRestricted, {{{"cpu", 4000}, {kGpu, 1000}}, {{"cpu", 4000}, {kGpu, 1000}}});
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 2000}, {kGpu, 2000}})), "refused");
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 5000}, {kGpu, 2000}})),
            absl::StrCat("0: cpu=4000 ", kGpu, "=1000, 1: cpu=1000 ", kGpu, "=1000"));
}

TEST_F(NumaZonesTest, BestEffortNeverRefuses) {
  const auto node = Node(NumaPolicy::kBestEffort, {{{"cpu", 2000}}, {{"cpu", 4000}}});
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 3000}})), "1: cpu=3000");
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 5000}})), "0: cpu=1000, 1: cpu=4000");
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 7000}})), "");
  EXPECT_EQ(Pick(*Node(NumaPolicy::kNone, {{{"cpu", 1000}}}), *Units({{"cpu", 7000}})), "");
}

TEST_F(NumaZonesTest, SearchesForSetsOfZonesAreBounded) {
  std::vector<ResourceList> zones(64, {{"cpu", 1000}, {kGpu, 1000}});
  const auto node = Node(NumaPolicy::kRestricted, zones);
  for (size_t i = 0; i < 33; ++i) node->zones[i].used.Add(model::kCpu, 1000);
  EXPECT_EQ(Pick(*node, *Units({{"cpu", 32000}})), "refused");
}

// By brute force over all sets of zones.
TEST_F(NumaZonesTest, PropertyAgreesWithAnOracle) {
  const auto seed = static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::vector<ResourceList> zones(1 + static_cast<size_t>(below(4)));
    for (ResourceList& zone : zones) {
      zone = {{"cpu", 1000 * below(5)}, {kGpu, 1000 * below(4)}};
    }
    const bool single = below(2) == 0;
    const auto node = Node(single ? NumaPolicy::kSingleNumaNode : NumaPolicy::kRestricted, zones);
    const ResourceList requests = {{"cpu", 1000 * below(10)}, {kGpu, 1000 * below(6)}};
    const auto units = Units(requests);
    std::vector<ResourceList> free = zones;
    for (size_t i = 0; i < zones.size(); ++i) {
      const int64_t used = 1000 * below(3);
      node->zones[i].used.Add(model::kCpu, used);
      free[i][0].second = std::max<int64_t>(0, free[i][0].second - used);
    }
    if (units == nullptr) continue;
    const auto has = [&](const std::vector<ResourceList>& of, uint32_t set, size_t resource) {
      int64_t sum = 0;
      for (size_t i = 0; i < of.size(); ++i)
        sum += (set >> i & 1) != 0 ? of[i][resource].second : 0;
      return sum >= requests[resource].second;
    };
    const uint32_t sets = 1U << zones.size();
    // The width that each resource prefers; 0: it is not requested; 9: no set has it.
    int width[2] = {0, 0};
    for (size_t resource = 0; resource < 2; ++resource) {
      if (requests[resource].second == 0) continue;
      width[resource] = 9;
      for (uint32_t set = 1; set < sets; ++set) {
        if (has(zones, set, resource)) {
          width[resource] = std::min(width[resource], __builtin_popcount(set));
        }
      }
    }
    bool fits = false;
    for (uint32_t set = 1; set < sets; ++set) {
      const int size = __builtin_popcount(set);
      const bool preferred =
          single ? size == 1
                 : (width[0] == 0 || width[0] == size) && (width[1] == 0 || width[1] == size);
      fits = fits || (preferred && has(free, set, 0) && has(free, set, 1));
    }
    const std::optional<ZonePick> pick = PickZones(*node, *units, ZoneCapacity::kNow);
    ASSERT_EQ(pick.has_value(), fits) << "seed " << seed << ", round " << round;
    if (!pick.has_value()) continue;
    ResourceList got;
    for (const ZoneShare& share : *pick) {
      for (const auto& [resource, amount] : share.amounts) {
        EXPECT_LE(amount, model::Get(free[static_cast<size_t>(share.zone)], names_.Name(resource)));
        model::Add(got, names_.Name(resource), amount);
      }
    }
    EXPECT_EQ(model::Get(got, "cpu"), requests[0].second) << "seed " << seed << ", round " << round;
    EXPECT_EQ(model::Get(got, kGpu), requests[1].second) << "seed " << seed << ", round " << round;
  }
}

}  // namespace
}  // namespace fairlead::state
