// What the hook plans, the engine places: nodes of a plan become real, the engine runs, and every
// pod that a node was planned for has a place. First cases in which pods depend on pods of other
// nodes or share a node with others, then random demand.
//
// FAIRLEAD_PLAN_SEEDS sets how many random worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "autoscale-hook/planner/planner.h"
#include "base/testing/environment.h"
#include "core/demand.h"
#include "core/engine_placement.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::core {
namespace {

using engine::testing::Cluster;
using model::testing::AppSelector;
using model::testing::AppTerm;
using model::testing::PodBuilder;
using verdict::Code;

constexpr int64_t kDollar = 1'000'000;

hook::InstanceType Type(const std::string& name, int64_t gpus, int64_t price,
                        std::vector<std::string> zones) {
  hook::InstanceType type;
  type.name = name;
  type.cpu_milli = 8000;
  type.memory_bytes = 32 * model::testing::kGiB;
  type.gpu_count = gpus;
  type.gpu_memory_mib = 40000;
  if (gpus > 0) type.gpu_model = "Test-GPU";
  type.zones = std::move(zones);
  type.on_demand_micro_usd = price;
  return type;
}

// As a decoder does it.
model::Pod Finished(model::Pod pod) {
  const bool sees = !pod.spec.pod_affinity.empty() || !pod.spec.pod_anti_affinity.empty() ||
                    !pod.spec.topology_spread.empty();
  if (sees) pod.spec.labels_for_affinity = pod.meta.labels;
  return pod;
}

PodBuilder Waits(const std::string& name, const std::string& app) {
  PodBuilder pod("ns", name);
  pod.Queue("q").Cpu(100).Label("app", app);
  return pod;
}

// A cluster, what may be bought for it, and a plan that becomes true.
class Purchase {
 public:
  Purchase() { cluster_.Queue("q", model::kUnlimited); }
  Cluster& cluster() { return cluster_; }
  model::NodePool& pool() { return pool_; }
  void Offer(std::vector<hook::InstanceType> types) {
    catalog_ = hook::Catalog::FromTypes(std::move(types));
  }
  // Machines of the type that are paid for anyway.
  void Reserve(const std::string& type, int64_t count) {
    std::vector<hook::InstanceType> types = catalog_.types();
    for (hook::InstanceType& one : types) {
      if (one.name == type) one.reservations = {{absl::StrCat("of-", type), "", count, 0, {}}};
    }
    Offer(std::move(types));
  }
  // Bought so far, by reservation. Never more than there are.
  const std::map<std::string, int64_t>& reserved() const {
    for (const hook::InstanceType& type : catalog_.types()) {
      for (const hook::Reservation& one : type.reservations) {
        const auto used = reserved_.find(one.name);
        EXPECT_LE(used == reserved_.end() ? 0 : used->second, one.count) << one.name;
      }
    }
    return reserved_;
  }
  void SetCaps(hook::CapsLeft caps) { caps_ = std::move(caps); }
  void SetMaxBondWork(int64_t work) { max_bond_work_ = work; }

  const hook::Plan& Plan() {
    const std::vector<engine::Waiting> waiting = Cycle().waiting;
    EnginePlacement::Promises promises;
    for (const engine::Waiting& entry : waiting) {
      for (const auto& pod : entry.pods) {
        if (pod.node != state::kNoId) promises.emplace_back(pod.pod, pod.node);
      }
    }
    demand_ = EngineDemand(cluster_.state(), cluster_.engine(), waiting).Release();
    hook::PlanInput input;
    input.demand = &demand_;
    input.offers = hook::MakeOffers(hook::Catalogs(&catalog_), {&pool_});
    input.caps = caps_;
    input.max_bond_work = max_bond_work_;
    hook::CapUsage usage;
    usage.nodes_by_reservation = reserved_;
    input.caps.AddReservations(input.offers, usage);
    EnginePlacement placement(cluster_.state(), cluster_.engine(), std::move(promises));
    const std::string before = cluster_.state().Dump();
    plan_ = hook::MakePlan(input, placement);
    EXPECT_EQ(cluster_.state().Dump(), before) << "a plan has left something behind";
    EXPECT_EQ(cluster_.engine().CheckConsistency(), "");
    return plan_;
  }
  // The nodes come, and the engine runs until it places nothing more.
  void Buy() {
    for (const hook::PlannedNode& planned : plan_.nodes) {
      if (planned.offer.reservation != nullptr) ++reserved_[planned.offer.reservation->name];
      model::Node node = hook::UsableNode(planned.offer, absl::StrCat("zz-bought-", bought_++));
      node.meta.labels.Erase(model::kNodeRequestLabel);
      node.meta.uid = absl::StrCat("uid-", node.meta.name);
      node.ready = true;
      cluster_.state().UpsertNode(node);
    }
    while (!Cycle().bindings.empty()) {
    }
  }
  // Without evictions: here nothing would carry them out.
  engine::CycleResult Cycle() {
    engine::CycleResult result =
        cluster_.engine().RunCycle(model::testing::At(++at_), /*may_evict=*/false);
    result.waiting = cluster_.engine().ExpandEquivalents(std::move(result.waiting));
    EXPECT_EQ(cluster_.engine().CheckConsistency(), "");
    return result;
  }
  int64_t PodsPlanned(size_t item) const {
    int64_t pods = 0;
    for (const hook::PlannedNode& node : plan_.nodes) {
      for (const auto& [of, count] : node.pods_of_item) pods += of == item ? count : 0;
    }
    return pods;
  }
  // Of the workload, those with a node.
  int64_t PodsPlaced(const std::string& workload) {
    int64_t placed = 0;
    cluster_.state().ForEachWorkload([&](const state::Workload& w) {
      if (model::Key(w.ns, w.name) == workload) placed = w.Active();
    });
    return placed;
  }
  // By workload.
  std::map<std::string, int64_t> PodsPlanned() const {
    std::map<std::string, int64_t> pods;
    for (size_t i = 0; i < demand_.size(); ++i) {
      if (PodsPlanned(i) > 0) pods[demand_[i].workload] = PodsPlanned(i);
    }
    return pods;
  }
  int64_t PodsMissing(const std::map<std::string, int64_t>& pods) {
    int64_t missing = 0;
    for (const auto& [workload, count] : pods) {
      missing += std::max<int64_t>(0, count - PodsPlaced(workload));
    }
    return missing;
  }
  std::set<std::string> ZonesPlanned() const {
    std::set<std::string> zones;
    for (const hook::PlannedNode& node : plan_.nodes) zones.insert(node.offer.zone);
    return zones;
  }
  void ExpectPlannedPodsPlaced() {
    for (size_t i = 0; i < demand_.size(); ++i) {
      EXPECT_GE(PodsPlaced(demand_[i].workload), PodsPlanned(i)) << demand_[i].workload;
    }
  }
  [[nodiscard]] std::string Describe() const {
    std::string text = cluster_.state().Dump();
    for (size_t i = 0; i < demand_.size(); ++i) {
      absl::StrAppend(&text, "item ", demand_[i].workload, " ",
                      verdict::CodeName(plan_.items[i].code), "\n");
      for (const auto& pods : demand_[i].classes) {
        absl::StrAppend(&text, "  ", pods.count, " x ", hook::BondOf(*pods.spec), " labels ",
                        pods.spec->labels_for_affinity.Get("app"), "\n");
      }
    }
    for (const hook::PlannedNode& node : plan_.nodes) {
      absl::StrAppend(&text, "planned ", node.offer.type->name, " ", node.offer.zone, ":");
      for (const auto& [item, pods] : node.pods_of_item) {
        absl::StrAppend(&text, " ", pods, " of ", demand_[item].workload);
      }
      absl::StrAppend(&text, "\n");
    }
    return text;
  }
  [[nodiscard]] const hook::Demand& demand() const { return demand_; }
  [[nodiscard]] const hook::Plan& plan() const { return plan_; }
  [[nodiscard]] const hook::ItemOutcome& OutcomeOf(const std::string& workload) const {
    for (size_t i = 0; i < demand_.size(); ++i) {
      if (demand_[i].workload == workload) return plan_.items[i];
    }
    ADD_FAILURE() << "no demand of " << workload;
    return plan_.items.front();
  }

 private:
  Cluster cluster_;
  model::NodePool pool_ = [] {
    model::NodePool pool;
    pool.meta.name = "pool";
    return pool;
  }();
  hook::Catalog catalog_;
  hook::CapsLeft caps_;
  int64_t max_bond_work_ = hook::kMaxBondWork;
  std::map<std::string, int64_t> reserved_;  // bought, by reservation
  hook::Demand demand_;
  hook::Plan plan_;
  int at_ = 0;
  int bought_ = 0;
};

// GPUs are cheap in z1 and large machines without are on offer in z2 alone: a plan by the cheapest
// node for each kind bought in two zones, and the gang never ran.
TEST(PlannedNodesTest, TwoKindsThatMustShareAZoneAreBoughtInOne) {
  Purchase purchase;
  hook::InstanceType plain = Type("plain", 0, kDollar / 2, {"z2"});
  plain.cpu_milli = 64'000;
  purchase.Offer({Type("gpu", 1, kDollar, {"z1", "z2"}), plain});
  purchase.cluster().Group(model::testing::MakeGroup("ns", "g", "q", 2));
  model::Pod worker = Waits("worker", "worker").Group("g").Gpus(1);
  worker.spec.pod_affinity = {AppTerm("server", model::kZoneLabel)};
  purchase.cluster().Pod(Finished(worker));
  purchase.cluster().Pod(Finished(Waits("server", "server").Group("g").Cpu(32'000)));
  EXPECT_EQ(purchase.Plan().nodes.size(), 2u);
  EXPECT_EQ(purchase.ZonesPlanned(), std::set<std::string>{"z2"});
  purchase.Buy();
  EXPECT_EQ(purchase.PodsPlaced("ns/g"), 2);
}

TEST(PlannedNodesTest, NothingIsBoughtInAnotherZoneThanThatOfThePodsThatRun) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 1, kDollar, {"z1"})});
  model::Node there = model::testing::MakeNode("there", 0);
  there.meta.labels.Set(model::kZoneLabel, "z2");
  purchase.cluster().state().UpsertNode(there);
  purchase.cluster().Pod(Waits("db", "db").On("there"));
  model::Pod near = Waits("near", "x").Gpus(1);
  near.spec.pod_affinity = {AppTerm("db", model::kZoneLabel)};
  purchase.cluster().Pod(Finished(near));
  EXPECT_EQ(purchase.Plan().nodes.size(), 0u);
  const hook::ItemOutcome& outcome = purchase.OutcomeOf("ns/near");
  EXPECT_EQ(outcome.code, Code::kNoInstanceTypeFits);
  ASSERT_EQ(outcome.details.size(), 1u);
  EXPECT_EQ(outcome.details[0],
            "no node on offer suits it beside the pods that run: node(s) didn't match pod affinity "
            "rules");
}

TEST(PlannedNodesTest, LonePodsThatShareAZoneAndThoseThatSpread) {
  for (const bool spread : {false, true}) {
    SCOPED_TRACE(spread ? "spread" : "shared");
    Purchase purchase;
    purchase.Offer({Type("gpu", 1, kDollar, {"z1", "z2", "z3"})});
    for (int i = 0; i < 6; ++i) {
      model::Pod pod = Waits(absl::StrCat("p", i), "a").Gpus(1);
      if (spread) {
        pod.spec.topology_spread = {{1, model::kZoneLabel, true, AppSelector("a"), 1, true, false}};
      } else {
        pod.spec.pod_affinity = {AppTerm("a", model::kZoneLabel)};
      }
      purchase.cluster().Pod(Finished(pod));
    }
    EXPECT_EQ(purchase.Plan().nodes.size(), 6u);
    EXPECT_EQ(purchase.ZonesPlanned().size(), spread ? 3u : 1u);
    purchase.Buy();
    purchase.ExpectPlannedPodsPlaced();
  }
}

TEST(PlannedNodesTest, SpreadCountsWhatRunsAlready) {
  Purchase purchase;
  purchase.Offer({Type("cheap", 1, kDollar, {"z1"}), Type("dear", 1, 2 * kDollar, {"z2"})});
  model::Node there = model::testing::MakeNode("there", 1);
  there.meta.labels.Set(model::kZoneLabel, "z1");
  purchase.cluster().state().UpsertNode(there);
  const auto pod_like = [](const std::string& name) {
    model::Pod pod = Waits(name, "a").Gpus(1);
    pod.spec.topology_spread = {{1, model::kZoneLabel, true, AppSelector("a"), 2, true, false}};
    return Finished(pod);
  };
  model::Pod runs = pod_like("runs");
  runs.node_name = "there";
  runs.phase = model::PodPhase::kRunning;
  purchase.cluster().Pod(runs);
  purchase.cluster().Pod(pod_like("waits"));
  purchase.Plan();
  EXPECT_EQ(purchase.ZonesPlanned(), std::set<std::string>{"z2"});
  purchase.Buy();
  purchase.ExpectPlannedPodsPlaced();
}

// One machine has room for both, but they must not share it.
TEST(PlannedNodesTest, KindsThatCannotShareANodeAreNotPlannedOntoOne) {
  for (const bool ports : {false, true}) {
    SCOPED_TRACE(ports ? "ports" : "anti-affinity");
    Purchase purchase;
    purchase.Offer({Type("big", 4, kDollar, {"z1"})});
    model::Pod one = Waits("one", "one").Gpus(1), two = Waits("two", "two").Gpus(2);
    if (ports) {
      one.spec.host_ports = two.spec.host_ports = {{8080, "TCP", ""}};
    } else {
      one.spec.pod_anti_affinity = {AppTerm("two", model::kHostnameLabel)};
    }
    purchase.cluster().Pod(Finished(one));
    purchase.cluster().Pod(Finished(two));
    EXPECT_EQ(purchase.Plan().nodes.size(), 2u);
    purchase.Buy();
    purchase.ExpectPlannedPodsPlaced();
  }
}

TEST(PlannedNodesTest, AntiAffinityOverZonesBuysOneInEachAndNoMore) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 8, kDollar, {"z1", "z2"})});
  for (int i = 0; i < 3; ++i) {
    model::Pod pod = Waits(absl::StrCat("p", i), "a").Gpus(1);
    pod.spec.pod_anti_affinity = {AppTerm("a", model::kZoneLabel)};
    purchase.cluster().Pod(Finished(pod));
  }
  EXPECT_EQ(purchase.Plan().nodes.size(), 2u);
  EXPECT_EQ(purchase.ZonesPlanned().size(), 2u);
  EXPECT_EQ(purchase.OutcomeOf("ns/p2").code, Code::kNoInstanceTypeFits);
  purchase.Buy();
  purchase.ExpectPlannedPodsPlaced();
}

TEST(PlannedNodesTest, ReservedMachinesServePodsThatDependOnOthers) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 8, kDollar, {"z1", "z2", "z3"})});
  purchase.Reserve("gpu", 2);
  for (int i = 0; i < 3; ++i) {
    model::Pod pod = Waits(absl::StrCat("p", i), "a").Gpus(1);
    pod.spec.pod_anti_affinity = {AppTerm("a", model::kZoneLabel)};
    purchase.cluster().Pod(Finished(pod));
  }
  EXPECT_EQ(purchase.Plan().nodes.size(), 3u);
  EXPECT_EQ(purchase.ZonesPlanned().size(), 3u);
  purchase.Buy();
  purchase.ExpectPlannedPodsPlaced();
  EXPECT_EQ(purchase.reserved(), (std::map<std::string, int64_t>{{"of-gpu", 2}}));
}

TEST(PlannedNodesTest, CapsHoldForThemInTheOrderOfService) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 1, kDollar, {"z1", "z2"})});
  hook::CapsLeft caps;
  caps.gpus = 3;
  purchase.SetCaps(caps);
  for (int i = 0; i < 2; ++i) {
    purchase.cluster().Pod(Finished(Waits(absl::StrCat("first", i), "x").Gpus(1).Created(i)));
  }
  for (int i = 0; i < 2; ++i) {
    model::Pod pod = Waits(absl::StrCat("tied", i), "a").Gpus(1).Created(10 + i);
    pod.spec.pod_affinity = {AppTerm("a", model::kZoneLabel)};
    purchase.cluster().Pod(Finished(pod));
  }
  purchase.cluster().Pod(Finished(Waits("last", "x").Gpus(1).Created(20)));
  EXPECT_EQ(purchase.Plan().nodes.size(), 3u);
  EXPECT_EQ(purchase.OutcomeOf("ns/first1").code, Code::kNodesRequested);
  EXPECT_EQ(purchase.OutcomeOf("ns/tied0").code, Code::kNodesRequested);
  EXPECT_EQ(purchase.OutcomeOf("ns/tied1").code, Code::kGpuCapReached);
  EXPECT_EQ(purchase.OutcomeOf("ns/last").code, Code::kGpuCapReached);
}

// One that would need all the work of a plan does not keep the others from theirs; it is told that
// it is not decided, and nothing is said that is not known.
TEST(PlannedNodesTest, WhatIsBeyondTheWorkOfAPlanIsPlannedInTheNextSteps) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 1, kDollar, {"z1", "z2", "z3"})});
  constexpr int kPods = 60;
  for (int i = 0; i < kPods; ++i) {
    model::Pod pod = Waits(absl::StrCat("p", i), "a").Gpus(1).Created(i);
    pod.spec.topology_spread = {{1, model::kZoneLabel, true, AppSelector("a"), 1, true, false}};
    purchase.cluster().Pod(Finished(pod));
  }
  purchase.SetMaxBondWork(2'000);
  const size_t first = purchase.Plan().nodes.size();
  EXPECT_GT(first, 3u);
  EXPECT_LT(first, size_t{kPods});
  EXPECT_TRUE(purchase.plan().more_next_step);
  const hook::ItemOutcome& last = purchase.OutcomeOf(absl::StrCat("ns/p", kPods - 1));
  EXPECT_TRUE(last.open);
  EXPECT_EQ(last.details, std::vector<std::string>{hook::kNextStep});
  EXPECT_EQ(purchase.OutcomeOf("ns/p0").code, Code::kNodesRequested);
  int placed = 0;
  for (int steps = 0; steps < 30 && placed < kPods; ++steps) {
    purchase.Buy();
    purchase.ExpectPlannedPodsPlaced();
    placed = 0;
    for (int i = 0; i < kPods; ++i) {
      placed += static_cast<int>(purchase.PodsPlaced(absl::StrCat("ns/p", i)));
    }
    if (placed == kPods) break;
    ASSERT_GT(purchase.Plan().nodes.size(), 0u);
  }
  EXPECT_EQ(placed, kPods);
}

TEST(PlannedNodesTest, AGangBeyondTheWorkOfAPlanLeavesSomeForTheOthers) {
  Purchase purchase;
  purchase.Offer({Type("gpu", 1, kDollar, {"z1", "z2", "z3"})});
  purchase.cluster().Group(model::testing::MakeGroup("ns", "large", "q", 400));
  for (int i = 0; i < 400; ++i) {
    model::Pod pod = Waits(absl::StrCat("l", i), "large").Group("large").Gpus(1);
    pod.spec.pod_affinity = {AppTerm("large", model::kZoneLabel)};
    purchase.cluster().Pod(Finished(pod));
  }
  model::Pod small = Waits("small", "small").Gpus(1).Created(100);
  small.spec.pod_affinity = {AppTerm("small", model::kZoneLabel)};
  purchase.cluster().Pod(Finished(small));
  purchase.SetMaxBondWork(12'000);
  EXPECT_EQ(purchase.Plan().nodes.size(), 1u);
  EXPECT_EQ(purchase.OutcomeOf("ns/small").code, Code::kNodesRequested);
  EXPECT_TRUE(purchase.OutcomeOf("ns/large").open);
  EXPECT_EQ(purchase.OutcomeOf("ns/large").details, std::vector<std::string>{hook::kNextStep});
}

// Nodes that were bought first take pods that come last, however many there are between.
TEST(PlannedNodesTest, RoomOnEveryPlannedNodeIsUsed) {
  Purchase purchase;
  hook::InstanceType big = Type("big", 0, kDollar, {"z1"});
  big.cpu_milli = 8200;
  purchase.Offer({big});
  constexpr int kNodes = 300;
  const auto spread = [&](const std::string& name, const std::string& app, int64_t cpu, int at) {
    model::Pod pod = Waits(name, app).Cpu(cpu).Created(at);
    pod.spec.topology_spread = {{1, model::kHostnameLabel, true, AppSelector(app), 1, true, false}};
    purchase.cluster().Pod(Finished(pod));
  };
  for (int i = 0; i < kNodes; ++i) spread(absl::StrCat("first", i), "a", 6000, i);
  for (int i = 0; i < kNodes; ++i) spread(absl::StrCat("second", i), "b", 2000, kNodes + i);
  EXPECT_EQ(purchase.Plan().nodes.size(), size_t{kNodes});
  purchase.Buy();
  purchase.ExpectPlannedPodsPlaced();
  EXPECT_EQ(purchase.PodsPlaced("ns/second299"), 1);
}

// What one zone takes holds for all types there; the cheapest type that takes as many is bought.
TEST(PlannedNodesTest, TheCheapestTypeForWhatADomainStillTakesIsBought) {
  Purchase purchase;
  std::vector<hook::InstanceType> types;
  for (int i = 1; i <= 8; ++i) {
    // The larger, the cheaper for each GPU.
    types.push_back(Type(absl::StrCat("t", i), i, kDollar * i - (i - 1) * 1000, {"z1", "z2"}));
  }
  purchase.Offer(std::move(types));
  for (int i = 0; i < 4; ++i) {
    model::Pod pod = Waits(absl::StrCat("p", i), "a").Gpus(1);
    pod.spec.topology_spread = {{1, model::kZoneLabel, true, AppSelector("a"), 1, true, false}};
    purchase.cluster().Pod(Finished(pod));
  }
  int64_t planned = 0;
  for (const hook::PlannedNode& node : purchase.Plan().nodes) {
    int64_t pods = 0;
    for (const auto& [item, count] : node.pods_of_item) pods += count;
    EXPECT_EQ(node.offer.type->gpu_count, pods);
    planned += pods;
  }
  EXPECT_EQ(planned, 4);
  // Far fewer than there are offers, 16, for each node.
  EXPECT_LT(purchase.plan().questions, 40);
  purchase.Buy();
  purchase.ExpectPlannedPodsPlaced();
}

// ---- random demand

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Upto(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Upto(n) == 0; }
  std::string App() { return absl::StrCat("app", Upto(3)); }
  std::string Key() { return OneIn(2) ? model::kHostnameLabel : model::kZoneLabel; }

 private:
  std::mt19937_64 random_;
};

model::Pod RandomPod(Dice& dice, PodBuilder builder) {
  builder.Cpu(100 * (1 + dice.Upto(20)));
  switch (dice.Upto(4)) {
    case 0:
      builder.GpuFraction(100 * (1 + dice.Upto(9)));
      break;
    case 1:
      break;
    default:
      builder.Gpus(1 + dice.Upto(2));
      break;
  }
  model::Pod pod = builder.Build();
  const auto term = [&] { return AppTerm(dice.App(), dice.Key()); };
  if (dice.OneIn(5)) pod.spec.host_ports = {{static_cast<int32_t>(80 + dice.Upto(2)), "TCP", ""}};
  if (dice.OneIn(3)) pod.spec.tolerations.push_back({"t", true, "", std::nullopt});
  if (dice.OneIn(5)) pod.spec.pod_affinity.push_back(term());
  if (dice.OneIn(6)) pod.spec.pod_anti_affinity.push_back(term());
  if (dice.OneIn(8)) {
    pod.spec.topology_spread.push_back({static_cast<int32_t>(1 + dice.Upto(2)), dice.Key(), true,
                                        AppSelector(dice.App()), 1, true, false});
  }
  return Finished(pod);
}

void FillAtRandom(Dice& dice, Purchase& purchase) {
  std::vector<hook::InstanceType> types;
  const int64_t kinds = 1 + dice.Upto(4);
  for (int64_t t = 0; t < kinds; ++t) {
    std::vector<std::string> zones;
    for (const char* zone : {"z1", "z2", "z3"}) {
      if (dice.OneIn(2)) zones.emplace_back(zone);
    }
    if (zones.empty()) zones.emplace_back("z1");
    const int64_t gpus = dice.Upto(5);
    types.push_back(Type(absl::StrCat("t", t), gpus, kDollar * (1 + gpus) + dice.Upto(kDollar),
                         std::move(zones)));
  }
  purchase.Offer(std::move(types));
  if (dice.OneIn(4)) {
    purchase.pool().taints.push_back({"t", "", model::TaintEffect::kNoSchedule});
  }
  const int64_t nodes = dice.Upto(3);
  for (int64_t i = 0; i < nodes; ++i) {
    model::Node node = model::testing::MakeNode(absl::StrCat("n", i), 2);
    node.meta.labels.Set(model::kZoneLabel, absl::StrCat("z", 1 + dice.Upto(3)));
    node.meta.labels.Set(model::kHostnameLabel, node.meta.name);
    node.meta.labels.Set(model::kGpuMemoryLabel, "40000");
    purchase.cluster().state().UpsertNode(node);
    model::Pod pod = RandomPod(dice, Waits(absl::StrCat("run", i), dice.App()));
    pod.node_name = node.meta.name;
    pod.phase = model::PodPhase::kRunning;
    purchase.cluster().Pod(pod);
  }
  const int64_t items = 1 + dice.Upto(6);
  for (int64_t i = 0; i < items; ++i) {
    const std::string name = absl::StrCat("w", i);
    if (dice.OneIn(3)) {
      const int64_t pods = 2 + dice.Upto(3);
      purchase.cluster().Group(
          model::testing::MakeGroup("ns", name, "q", static_cast<int32_t>(pods)));
      for (int64_t p = 0; p < pods; ++p) {
        purchase.cluster().Pod(
            RandomPod(dice, Waits(absl::StrCat(name, "-", p), dice.App()).Group(name)));
      }
    } else {
      const model::Pod like = RandomPod(dice, Waits(name, dice.App()).Created(i));
      const int64_t copies = dice.OneIn(2) ? 1 : 1 + dice.Upto(5);
      for (int64_t c = 0; c < copies; ++c) {
        model::Pod pod = like;
        pod.meta.name = absl::StrCat(name, "-", c);
        pod.meta.uid = absl::StrCat("uid-", pod.meta.name);
        purchase.cluster().Pod(pod);
      }
    }
  }
}

// Pods without bonds are packed as tightly as can be, and the engine places them one after another:
// what it cannot place is planned for once more. With bonds a pod that the engine puts elsewhere
// than the rehearsal did can shut another one out for good. Both are rare, and bounded here: 2% of
// the pods planned for, and 0.5%.
TEST(PlannedNodesProperty, WhatThePlanBuysTheEnginePlaces) {
  const auto seeds =
      static_cast<int64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_PLAN_SEEDS", 150));
  int64_t nodes = 0, unused = 0, planned = 0, late = 0, never = 0;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Dice dice(static_cast<uint64_t>(seed));
    Purchase purchase;
    FillAtRandom(dice, purchase);
    purchase.Plan();
    const std::map<std::string, int64_t> pods = purchase.PodsPlanned();
    for (const auto& [workload, count] : pods) planned += count;
    purchase.Buy();
    late += purchase.PodsMissing(pods);
    for (int again = 0; again < 2 && purchase.PodsMissing(pods) > 0; ++again) {
      purchase.Plan();
      purchase.Buy();
    }
    const int64_t missing = purchase.PodsMissing(pods);
    never += missing;
    if (missing > 0) std::cout << "seed " << seed << ": never placed: " << missing << "\n";
    for (const auto& [name, id] : purchase.cluster().state().nodes_by_name()) {
      if (name.rfind("zz-bought-", 0) != 0) continue;
      ++nodes;
      unused += purchase.cluster().state().node(id).pods.empty() ? 1 : 0;
    }
    if (HasFailure()) {
      std::cout << purchase.Describe();
      break;
    }
  }
  std::cout << nodes << " nodes planned, unused: " << unused << "; " << planned
            << " pods planned for, not placed at once: " << late << ", never: " << never << "\n";
  EXPECT_GT(nodes, seeds);
  EXPECT_LE(unused * 50, nodes);
  EXPECT_LE(late * 50, planned);
  EXPECT_LE(never * 200, planned);
}

// The same with reservations: never more than there are, and the engine places what is planned.
TEST(PlannedNodesProperty, ReservationsAreNeverPassed) {
  const auto seeds =
      static_cast<int64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_PLAN_SEEDS", 150)) / 2;
  int64_t planned = 0, missing = 0, reserved = 0;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Dice dice(static_cast<uint64_t>(seed + 10'000));
    Purchase purchase;
    FillAtRandom(dice, purchase);
    for (int64_t t = 0; t < 4; ++t) {
      if (dice.OneIn(2)) purchase.Reserve(absl::StrCat("t", t), 1 + dice.Upto(3));
    }
    purchase.Plan();
    const std::map<std::string, int64_t> pods = purchase.PodsPlanned();
    for (const auto& [workload, count] : pods) planned += count;
    for (int again = 0; again < 3; ++again) {
      purchase.Buy();
      for (const auto& [name, count] : purchase.reserved()) reserved += again == 0 ? count : 0;
      if (purchase.PodsMissing(pods) == 0) break;
      purchase.Plan();
    }
    missing += purchase.PodsMissing(pods);
    if (HasFailure()) break;
  }
  EXPECT_GT(reserved, seeds / 2);
  EXPECT_LE(missing * 200, planned);
}

}  // namespace
}  // namespace fairlead::core
