// Nodes for pods that a topology binds together, through the planner.
#include "autoscale-hook/planner/plan_domains.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

constexpr char kRack[] = "example.com/rack";
using Spec1 = std::shared_ptr<const model::PodSpec>;

verdict::DomainRule Rule(std::vector<std::string> labels, int64_t required, int64_t preferred = 0) {
  verdict::DomainRule rule;
  rule.what = "topology t";
  rule.labels = std::move(labels);
  rule.required = required;
  rule.preferred = preferred;
  return rule;
}
verdict::DomainRule OneZone() { return Rule({model::kZoneLabel, model::kHostnameLabel}, 1); }
verdict::DomainRule OneNode() { return Rule({model::kZoneLabel, model::kHostnameLabel}, 2); }

// A gang under one rule; `min` of the `count` pods have to start together.
DemandItem Gang(const std::string& name, const Spec1& spec, int64_t count, verdict::DomainRule rule,
                int64_t min = -1) {
  DemandItem item = Item(name, spec, count, true);
  item.classes[0].min_count = min < 0 ? count : min;
  item.domains.rules = {std::move(rule)};
  item.domains.parts = {{0, item.classes}};
  return item;
}

// Pods of another kind under the same rule; all of them have to start.
void AddClass(DemandItem& gang, verdict::DemandClass pods) {
  pods.min_count = pods.count;
  gang.classes.push_back(std::move(pods));
  gang.domains.parts[0].classes = gang.classes;
}

class PlanDomainsTest : public ::testing::Test {
 protected:
  // A type that is sold in these zones.
  static InstanceType In(std::vector<std::string> zones, const std::string& name, int64_t gpus,
                         int64_t dollars) {
    InstanceType type = Type(name, 8 + 8 * gpus, 64 + 64 * gpus, gpus, dollars * kDollar);
    type.zones = std::move(zones);
    return type;
  }
  // A pool of one zone (empty: of all) with at most so many nodes.
  model::NodePool& Pool(const std::string& name, const std::string& zone, int64_t max_nodes,
                        const std::string& rack = "") {
    model::NodePool& pool = pools_.emplace_back(std::make_unique<model::NodePool>()).operator*();
    pool.meta.name = name;
    if (!zone.empty()) pool.zones = {zone};
    if (!rack.empty()) pool.labels.Set(kRack, rack);
    caps_.nodes_by_pool[name] = max_nodes;
    return pool;
  }
  const Plan& Run(std::vector<InstanceType> types, Demand demand) {
    catalog_ = std::make_unique<Catalog>(Catalog::FromTypes(std::move(types)));
    demand_ = std::move(demand);
    if (pools_.empty()) Pool("all", "", kNoBound);
    std::vector<const model::NodePool*> pools;
    pools.reserve(pools_.size());
    for (const auto& pool : pools_) pools.push_back(pool.get());
    PlanInput input = InputOf(*catalog_, pools, demand_, resting_);
    input.caps = caps_;
    return plan_ = MakePlan(input, placement_);
  }
  // "type/zone" of the item's nodes with their number, "2xa/z1 1xb/z2"; or its code.
  std::string Bought(size_t item) const {
    if (plan_.items[item].code != Code::kNodesRequested) {
      return std::string(verdict::CodeName(plan_.items[item].code));
    }
    std::map<std::string, int> count;
    for (const size_t node : plan_.items[item].nodes) {
      const Offer& offer = plan_.nodes[node].offer;
      ++count[absl::StrCat("x", offer.type->name, "/", offer.zone)];
    }
    return absl::StrJoin(count, " ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, entry.second, entry.first);
    });
  }
  std::string Details(size_t item) const { return absl::StrJoin(plan_.items[item].details, "; "); }

  std::vector<std::unique_ptr<model::NodePool>> pools_;
  std::set<std::string> resting_;  // zones
  CapsLeft caps_;
  Demand demand_;
  std::unique_ptr<Catalog> catalog_;
  ArithmeticPlacement placement_;
  Plan plan_;
};

TEST_F(PlanDomainsTest, AllNodesOfAGangInTheCheapestZone) {
  Run({In({"z1"}, "dear", 1, 3), In({"z2"}, "cheap", 1, 2)},
      {Gang("g", Spec(1000, 1, 1), 4, OneZone())});
  EXPECT_EQ(Bought(0), "4xcheap/z2");
}

TEST_F(PlanDomainsTest, TheZoneHasToSellWhatEveryKindOfPodNeeds) {
  // A CPU node would be cheapest in z1, where no GPU is sold.
  const Spec1 gpu = Spec(1000, 1, 1), cpu = Spec(15000, 1, 0);
  DemandItem gang = Gang("g", gpu, 2, OneZone());
  AddClass(gang, {cpu, 2});
  Run({In({"z1"}, "c", 1, 1), In({"z2"}, "big", 4, 9), In({"z2"}, "g", 1, 5)}, {gang});
  EXPECT_EQ(plan_.items[0].code, Code::kNodesRequested);
  std::set<std::string> zones;
  for (const PlannedNode& node : plan_.nodes) zones.insert(node.offer.zone);
  EXPECT_EQ(zones.size(), 1u);
}

TEST_F(PlanDomainsTest, ZoneThatCannotDeliverTheWholeIsLeftAlone) {
  Pool("p1", "z1", 3);
  Pool("p2", "z2", 4);
  Run({In({"z1", "z2"}, "a", 1, 2)}, {Gang("g", Spec(1000, 1, 1), 4, OneZone())});
  EXPECT_EQ(Bought(0), "4xa/z2");
}

TEST_F(PlanDomainsTest, GangBehindAnotherGoesWhereThereIsRoomLeftUnderTheCaps) {
  Pool("p1", "z1", 5);
  Pool("p2", "z2", 4);
  const Spec1 pod = Spec(1000, 1, 1);
  Run({In({"z1", "z2"}, "a", 1, 2)}, {Gang("g1", pod, 4, OneZone()), Gang("g2", pod, 4, OneZone()),
                                      Gang("g3", pod, 4, OneZone()), Item("single", pod, 1)});
  EXPECT_EQ(Bought(0), "4xa/z1");
  EXPECT_EQ(Bought(1), "4xa/z2");
  EXPECT_EQ(Bought(2), "InsufficientCapacity");
  EXPECT_EQ(Details(2), "its node pools are at their maximum");
  EXPECT_EQ(Bought(3), "1xa/z1");
}

TEST_F(PlanDomainsTest, OfTheRestAsManyAsJoinTheMinimum) {
  Pool("p1", "z1", 3);
  Run({In({"z1"}, "a", 1, 2)}, {Gang("g", Spec(1000, 1, 1), 6, OneZone(), /*min=*/2)});
  EXPECT_EQ(Bought(0), "3xa/z1");
  EXPECT_EQ(Details(0), "nodes for 3 of 6 pods");
}

TEST_F(PlanDomainsTest, RunningPodsPinTheZone) {
  verdict::DomainRule pinned = OneZone();
  pinned.pinned = {{"z2"}};
  Run({In({"z1"}, "cheap", 1, 1), In({"z2"}, "dear", 1, 5)},
      {Gang("g", Spec(1000, 1, 1), 2, pinned)});
  EXPECT_EQ(Bought(0), "2xdear/z2");
  pinned.pinned = {{"z9"}};
  Run({In({"z1"}, "cheap", 1, 1)}, {Gang("g", Spec(1000, 1, 1), 2, pinned)});
  EXPECT_EQ(Bought(0), "NoInstanceTypeFits");
  EXPECT_EQ(Details(0), "topology t: no node is on offer in the domain of the pods that run (z9)");
  // Relabelled meanwhile: each of the domains in which they run will do.
  pinned.pinned = {{"z2"}, {"z1"}};
  Run({In({"z1"}, "cheap", 1, 1), In({"z2"}, "dear", 1, 5)},
      {Gang("g", Spec(1000, 1, 1), 2, pinned)});
  EXPECT_EQ(Bought(0), "2xcheap/z1");
}

TEST_F(PlanDomainsTest, WhereSomeHaveRoomTheOthersAreBoughtForIfThatIsCheaper) {
  const Spec1 pod = Spec(1000, 1, 1);
  DemandItem gang = Gang("g", pod, 4, OneZone());
  gang.domains.room = {{"z2"}, {{pod, 2, 2}}};
  Run({In({"z1"}, "cheap", 1, 2), In({"z2"}, "dear", 1, 3)}, {gang});
  EXPECT_EQ(Bought(0), "2xdear/z2");
  EXPECT_EQ(Details(0), "");
  gang.domains.room->rest = {{pod, 3, 3}};
  Run({In({"z1"}, "cheap", 1, 2), In({"z2"}, "dear", 1, 3)}, {gang});
  EXPECT_EQ(Bought(0), "4xcheap/z1");
  // Where there is nothing to buy, the room is of no use.
  Run({In({"z1"}, "cheap", 1, 2)}, {gang});
  EXPECT_EQ(Bought(0), "4xcheap/z1");
  // A cap that leaves enough for the others alone.
  caps_.gpus = 3;
  Run({In({"z1"}, "cheap", 1, 2), In({"z2"}, "dear", 1, 3)}, {gang});
  EXPECT_EQ(Bought(0), "3xdear/z2");
  caps_.gpus = 2;
  Run({In({"z1"}, "cheap", 1, 2), In({"z2"}, "dear", 1, 3)}, {gang});
  EXPECT_EQ(Bought(0), "GpuCapReached");
}

TEST_F(PlanDomainsTest, RoomIsOfOneGangAlone) {
  const Spec1 pod = Spec(1000, 1, 1);
  DemandItem first = Gang("a", pod, 4, OneZone());
  first.domains.room = {{"z1"}, {{pod, 1, 1}}};
  Run({In({"z1"}, "one", 1, 2)}, {first, Gang("b", pod, 4, OneZone())});
  EXPECT_EQ(Bought(0), "1xone/z1");
  EXPECT_EQ(Bought(1), "4xone/z1");
}

TEST_F(PlanDomainsTest, OneNodeTakesTheWholeSet) {
  const Spec1 pod = Spec(1000, 1, 1);
  const std::vector<InstanceType> types = {In({"z1"}, "one", 1, 1), In({"z1"}, "four", 4, 9),
                                           In({"z1"}, "eight", 8, 30)};
  Run(types, {Gang("g", pod, 4, OneNode())});
  EXPECT_EQ(Bought(0), "1xfour/z1");
  // Two of them may share a larger node where that is cheaper, and only there.
  Run({In({"z1"}, "four", 4, 9), In({"z1"}, "eight", 8, 12)},
      {Gang("g1", pod, 4, OneNode()), Gang("g2", pod, 4, OneNode())});
  EXPECT_EQ(Bought(0), "1xeight/z1");
  EXPECT_EQ(plan_.items[0].nodes, plan_.items[1].nodes);
  Run(types, {Gang("g", pod, 9, OneNode())});
  EXPECT_EQ(Bought(0), "NoInstanceTypeFits");
  EXPECT_EQ(Details(0),
            "topology t: 9 pods have to share a node, the largest that may be bought holds 8");
  // What is above the minimum is left where no node takes it too.
  Run(types, {Gang("g", pod, 12, OneNode(), /*min=*/6)});
  EXPECT_EQ(Bought(0), "1xeight/z1");
  EXPECT_EQ(Details(0), "nodes for 8 of 12 pods");
}

TEST_F(PlanDomainsTest, OneNodeForPodsOfSeveralKinds) {
  const Spec1 gpu = Spec(1000, 1, 1), cpu = Spec(12000, 1, 0);
  DemandItem gang = Gang("g", gpu, 2, OneNode());
  AddClass(gang, {cpu, 2});
  // Two GPUs would do in "two" (24 cores); with the others it takes 26.
  Run({In({"z1"}, "two", 2, 2), In({"z1"}, "three", 3, 4)}, {gang});
  EXPECT_EQ(Bought(0), "1xthree/z1");
  EXPECT_EQ(plan_.nodes[0].pods_of_item, (std::vector<std::pair<size_t, int64_t>>{{0, 4}}));
}

TEST_F(PlanDomainsTest, UnknownLabelsAndLabelsOfAPool) {
  const Spec1 pod = Spec(1000, 1, 1);
  const verdict::DomainRule rack = Rule({model::kZoneLabel, kRack, model::kHostnameLabel}, 2);
  const std::vector<InstanceType> types = {In({"z1"}, "a", 1, 2)};
  Run(types, {Gang("g", pod, 2, rack)});
  EXPECT_EQ(Bought(0), "NoInstanceTypeFits");
  EXPECT_EQ(Details(0), "topology t: no node on offer has the labels of all levels");
  // Only preferred, or an inner level: the node would be outside the tree all the same.
  Run(types, {Gang("g", pod, 2, Rule({model::kZoneLabel, kRack}, 1))});
  EXPECT_EQ(Bought(0), "NoInstanceTypeFits");
  Run(types, {Gang("g", pod, 2, Rule({model::kZoneLabel, kRack}, 0, 1))});
  EXPECT_EQ(Bought(0), "NoInstanceTypeFits");

  pools_.clear();
  Pool("r1", "z1", 3, "r1");
  Pool("r2", "z1", 4, "r2");
  Run(types, {Gang("g1", pod, 4, rack), Gang("g2", pod, 3, rack), Gang("g3", pod, 3, rack),
              Gang("g4", pod, 5, Rule({model::kZoneLabel, kRack, model::kHostnameLabel}, 1))});
  std::map<std::string, std::set<std::string>> racks;  // by item
  for (const PlannedNode& node : plan_.nodes) {
    for (const auto& [item, pods] : node.pods_of_item) {
      racks[demand_[item].workload].insert(node.offer.pool->meta.name);
    }
  }
  EXPECT_EQ(racks["g1"], (std::set<std::string>{"r2"}));
  EXPECT_EQ(racks["g2"], (std::set<std::string>{"r1"}));
  EXPECT_EQ(Bought(2), "InsufficientCapacity");
  EXPECT_EQ(Bought(3), "InsufficientCapacity");
}

TEST_F(PlanDomainsTest, PreferredLevelsCostNothingMoreAndForbidNothing) {
  const Spec1 pod = Spec(1000, 1, 1);
  const verdict::DomainRule zone = Rule({model::kZoneLabel, model::kHostnameLabel}, 0, 1);
  // Three pods: 2 + 1 in two zones, or three small ones in one, for the same money.
  Run({In({"z1"}, "two", 2, 2), In({"z2"}, "one", 1, 1)}, {Gang("g", pod, 3, zone)});
  EXPECT_EQ(Bought(0), "3xone/z2");
  // One zone alone is dearer.
  Run({In({"z1"}, "two", 2, 1), In({"z2"}, "one", 1, 1)}, {Gang("g", pod, 4, zone)});
  EXPECT_EQ(Bought(0), "2xtwo/z1");
  Run({In({"z1"}, "eight", 8, 4), In({"z2"}, "one", 1, 1)}, {Gang("g", pod, 9, zone)});
  EXPECT_EQ(Bought(0), "1xeight/z1 1xone/z2");
  // One host at the price of several.
  const verdict::DomainRule host = Rule({model::kZoneLabel, model::kHostnameLabel}, 1, 2);
  Run({In({"z1"}, "one", 1, 1), In({"z1"}, "four", 4, 4)}, {Gang("g", pod, 3, host)});
  EXPECT_EQ(Bought(0), "3xone/z1");
  Run({In({"z1"}, "one", 1, 1), In({"z1"}, "four", 4, 3)}, {Gang("g", pod, 3, host)});
  EXPECT_EQ(Bought(0), "1xfour/z1");
  // No zone can deliver it alone.
  pools_.clear();
  Pool("p1", "z1", 2);
  Pool("p2", "z2", 2);
  Run({In({"z1", "z2"}, "one", 1, 1)}, {Gang("g", pod, 4, zone)});
  EXPECT_EQ(Bought(0), "2xone/z1 2xone/z2");
}

// Sub-groups of a node each, all of them in one zone.
TEST_F(PlanDomainsTest, RulesInsideARule) {
  const Spec1 pod = Spec(1000, 1, 1);
  DemandItem gang = Item("g", pod, 8, true);
  gang.domains.rules = {OneZone(), OneNode(), OneNode()};
  gang.domains.rules[1].around = gang.domains.rules[2].around = 0;
  gang.domains.parts = {{1, {{pod, 4, 4}}}, {2, {{pod, 4, 4}}}};
  Run({In({"z1"}, "one", 1, 1), In({"z1"}, "four", 4, 9), In({"z2"}, "four-z2", 4, 8)}, {gang});
  EXPECT_EQ(Bought(0), "2xfour-z2/z2");
  // A cap on the zone: whole elsewhere, never a node in each.
  pools_.clear();
  Pool("p1", "z1", 1);
  Pool("p2", "z2", 2);
  Run({In({"z1", "z2"}, "four", 4, 9)}, {gang});
  EXPECT_EQ(Bought(0), "2xfour/z2");
  // Where the one around them has no rule, each may be in a zone of its own.
  pools_.clear();
  Pool("p1", "z1", 2);
  Pool("p2", "z2", 2);
  gang.domains.rules = {OneZone(), OneZone()};
  gang.domains.parts = {{0, {{pod, 2, 2}}}, {1, {{pod, 2, 2}}}};
  gang.classes[0].count = 4;
  Run({In({"z1", "z2"}, "one", 1, 1)}, {gang});
  EXPECT_EQ(Bought(0), "2xone/z1 2xone/z2");
}

TEST_F(PlanDomainsTest, PodsWithoutARuleGoAnywhere) {
  const Spec1 gpu = Spec(20000, 1, 2), cpu = Spec(8000, 1, 0);
  DemandItem gang = Item("g", gpu, 2, true);
  gang.classes.push_back({cpu, 1, 1});
  gang.domains.rules = {OneZone()};
  gang.domains.parts = {{-1, {{cpu, 1, 1}}}, {0, {{gpu, 2, 2}}}};
  Run({In({"z1"}, "cpu", 0, 1), In({"z2"}, "gpu", 2, 9)}, {gang});
  EXPECT_EQ(Bought(0), "1xcpu/z1 2xgpu/z2");
}

TEST_F(PlanDomainsTest, StockOutSendsTheWholeElsewhereAndElsewhereIsWaitedFor) {
  const Spec1 pod = Spec(1000, 1, 1);
  resting_ = {"z1"};
  Run({In({"z1", "z2"}, "a", 1, 1)}, {Gang("g", pod, 3, OneZone())});
  EXPECT_EQ(Bought(0), "3xa/z2");
  resting_ = {"z1", "z2"};
  Run({In({"z1", "z2"}, "a", 1, 1)}, {Gang("g", pod, 3, OneZone()), Gang("h", pod, 3, OneNode())});
  EXPECT_EQ(Bought(0), "InsufficientCapacity");
  EXPECT_EQ(plan_.retry_at, testing::kRestsUntil);
  EXPECT_EQ(Bought(1), "NoInstanceTypeFits");  // whatever comes back
  EXPECT_TRUE(plan_.nodes.empty());
}

TEST_F(PlanDomainsTest, CapsAreToldAsForOthers) {
  caps_.gpus = 3;
  Run({In({"z1", "z2"}, "a", 1, 1)}, {Gang("g", Spec(1000, 1, 1), 4, OneZone())});
  EXPECT_EQ(Bought(0), "GpuCapReached");
  EXPECT_EQ(Details(0), "the cheapest nodes for it have 4 GPUs, the cap leaves 3");
  caps_.gpus = kNoBound;
  caps_.micro_usd_per_hour = 5 * kDollar;
  Run({In({"z1", "z2"}, "four", 4, 9)}, {Gang("g", Spec(1000, 1, 1), 4, OneNode())});
  EXPECT_EQ(Bought(0), "CostCapReached");
}

TEST_F(PlanDomainsTest, WhatCannotBePlannedForExactlyIsNotBoughtFor) {
  auto pod = std::make_shared<model::PodSpec>(*Spec(1000, 1, 1));
  pod->topology_spread.push_back({1, model::kZoneLabel, true, {}, 1, true, false});
  Run({In({"z1"}, "a", 1, 1)}, {Gang("g", pod, 2, OneZone())});
  EXPECT_EQ(Bought(0), "InsufficientCapacity");
  EXPECT_EQ(Details(0),
            "nodes for a topology cannot be planned for pods that spread over "
            "topology.kubernetes.io/zone");
  EXPECT_TRUE(plan_.nodes.empty());
}

TEST_F(PlanDomainsTest, ManyEqualGangsAreChosenForOnce) {
  Demand demand;
  for (int i = 0; i < 500; ++i) {
    demand.push_back(Gang(absl::StrCat("g", i), Spec(1000, 1, 1), 8, OneZone()));
  }
  Run({In({"z1", "z2", "z3"}, "one", 1, 2), In({"z1", "z2", "z3"}, "eight", 8, 12)}, demand);
  EXPECT_EQ(plan_.nodes.size(), 500u);
  for (size_t i = 0; i < demand.size(); ++i) EXPECT_EQ(Bought(i), "1xeight/z1");
  EXPECT_LT(placement_.questions, 200);
}

bool HoldsAll(const InstanceType& type, const DemandItem& item) {
  std::vector<int64_t> counts;
  counts.reserve(item.classes.size());
  for (const verdict::DemandClass& pod_class : item.classes) counts.push_back(pod_class.count);
  return Holds(type, item.classes, counts);
}

// For one gang the price is that of the cheapest zone planned alone, without any rule; and nothing
// of an item is ever outside its zone.
TEST_F(PlanDomainsTest, RandomGangsCostWhatTheirCheapestZoneCostsAlone) {
  constexpr uint64_t kSeed = 20261121;
  Random random(kSeed);
  const auto instances = static_cast<int>(FromEnvironment("FAIRLEAD_PLANNER_INSTANCES", 60));
  int bought = 0;
  for (int i = 0; i < instances; ++i) {
    SCOPED_TRACE(absl::StrCat(random.Describe(), " instance ", i));
    std::vector<InstanceType> types;
    for (int64_t t = random.Between(1, 4); t > 0; --t) {
      std::vector<std::string> zones;
      for (const char* zone : {"z1", "z2", "z3"}) {
        if (random.Between(0, 2) > 0) zones.emplace_back(zone);
      }
      if (zones.empty()) zones = {"z1"};
      const int64_t gpus = int64_t{1} << random.Between(0, 3);
      types.push_back(In(zones, absl::StrCat("t", t), gpus, gpus * random.Between(2, 6)));
    }
    DemandItem gang =
        Gang("g", Spec(random.Between(1, 8) * 1000, random.Between(1, 60), random.Between(0, 4)),
             random.Between(1, 6), random.Between(0, 2) == 0 ? OneNode() : OneZone());
    if (random.Between(0, 1) == 0) {
      AddClass(gang,
               {Spec(random.Between(1, 8) * 1000, 1, random.Between(0, 2)), random.Between(1, 4)});
    }
    const bool one_node = gang.domains.rules[0].required == 2;
    int64_t cheapest = kNoBound;
    for (const InstanceType& type : types) {
      if (one_node && HoldsAll(type, gang)) {
        cheapest = std::min(cheapest, *type.on_demand_micro_usd);
      }
    }
    for (const char* zone : {"z1", "z2", "z3"}) {
      if (one_node) break;
      pools_.clear();
      caps_ = {};
      Pool("only", zone, kNoBound);
      DemandItem free = gang;
      free.domains = {};
      Run(types, {free});
      if (plan_.items[0].code == Code::kNodesRequested) {
        cheapest = std::min(cheapest, plan_.price_micro_usd_per_hour);
      }
    }
    pools_.clear();
    caps_ = {};
    Run(types, {gang});
    if (cheapest == kNoBound) {
      EXPECT_EQ(Bought(0), "NoInstanceTypeFits");
      continue;
    }
    ++bought;
    ASSERT_EQ(plan_.items[0].code, Code::kNodesRequested) << Details(0);
    EXPECT_EQ(plan_.price_micro_usd_per_hour, cheapest);
    std::set<std::string> zones;
    for (const PlannedNode& node : plan_.nodes) zones.insert(node.offer.zone);
    EXPECT_EQ(zones.size(), 1u);
    if (one_node) {
      EXPECT_EQ(plan_.nodes.size(), 1u);
    }
  }
  EXPECT_GT(bought, instances / 4);
}

}  // namespace
}  // namespace fairlead::hook
