// Limits on provisioning in vain: gathering, rate, total cap, purchases that did not help, and
// nodes that are smaller than the catalogue says.
#include <functional>
#include <set>
#include <string>

#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/provisioning/gathering.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kGiB;
using testing::kStart;
using testing::Spec;
using testing::Type;
using verdict::Code;

std::string DetailsOf(const DemandOutcome& outcome) {
  std::string all;
  for (const std::string& detail : outcome.details) all += detail + "; ";
  return all;
}

// ---- gathering

class GatheringTest : public HookTest {
 protected:
  GatheringTest() {
    catalog_ =
        Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar), Type("g.8", 64, 256, 8, 5 * kDollar)});
    options_.gathering_quiet = absl::Milliseconds(300);
    options_.gathering_max = absl::Seconds(3);
    Restart();
  }
};

TEST_F(GatheringTest, PodsThatComeOneAfterAnotherCostWhatTheyCostTogether) {
  Demand demand;
  for (int i = 0; i < 64; ++i) {
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    EXPECT_EQ(out.wake_at, std::min(now_ + absl::Milliseconds(300), kStart + absl::Seconds(3)));
    now_ += absl::Milliseconds(20);
  }
  now_ += absl::Milliseconds(280);
  const StepOutput out = StepAndApply(demand);
  int64_t price = 0;
  for (const auto& node : out.created) price += node.request.price_micro_usd_per_hour;
  EXPECT_EQ(price, 40 * kDollar);
}

TEST_F(GatheringTest, NothingWaitsLongerThanTheMaximum) {
  Demand demand;
  absl::Time first_order = absl::InfiniteFuture();
  for (int i = 0; i < 50; ++i, now_ += absl::Milliseconds(200)) {
    if (i < 20) demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
    if (!StepAndApply(demand).created.empty()) first_order = std::min(first_order, now_);
  }
  EXPECT_EQ(first_order, kStart + absl::Seconds(3));
}

TEST_F(GatheringTest, GangsThatComeOneAfterAnotherCostWhatTheyCostTogether) {
  Demand demand;
  for (int i = 0; i < 32; ++i) {
    demand.push_back(
        Item(absl::StrCat("team/gang", 100 + i), Spec(1000, 4, 1), 2, /*atomic=*/true));
    EXPECT_TRUE(StepAndApply(demand).created.empty());
    now_ += absl::Milliseconds(20);
  }
  now_ += absl::Milliseconds(280);
  int64_t price = 0;
  for (const auto& node : StepAndApply(demand).created) {
    price += node.request.price_micro_usd_per_hour;
  }
  EXPECT_EQ(price, 40 * kDollar);
}

TEST_F(GatheringTest, WhatCannotBeServedDoesNotKeepTheWindowOpen) {
  const Demand demand = {Item("team/huge", Spec(1000000, 4, 1), 1)};
  StepAndApply(demand);
  now_ += absl::Milliseconds(300);
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  now_ += absl::Milliseconds(20);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  EXPECT_GT(out.wake_at, now_ + absl::Seconds(3));
}

// ---- demand that is not charged

using Service = DemandOutcome::Service;

TEST_F(HookTest, NothingIsProvisionedForWhatIsNotCharged) {
  options_.max_nodes = 1;
  Restart();
  Demand demand = {Item("team/first", Spec(1000, 4, 1), 1), Item("team/next", Spec(1001, 4, 1), 1)};
  demand[0].charged = false;
  StepOutput out = StepAndApply(demand);
  // It is planned behind what is charged: with what the cap leaves then.
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].service, Service::kServed);
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.reason_workloads, std::vector<std::string>{"team/next"});

  options_.max_nodes = 2;
  Restart();
  out = StepAndApply({demand[0]});
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
  EXPECT_GT(out.wake_at, now_ + absl::Seconds(10)) << "it is for others to charge it";

  demand[0].charged = true;
  out = StepAndApply({demand[0]});
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.created.size(), 1u);
}

TEST_F(HookTest, WhatIsHeldForAMomentIsNotRefused) {
  options_.guard.burst = 1;
  options_.gathering_quiet = absl::Milliseconds(300);
  Restart();
  const auto kind = Spec(1000, 4, 1);
  const Demand demand = {Item("team/a", kind, 1), Item("team/b", kind, 1),
                         Item("team/huge", Spec(100'000'000, 4, 1), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[2].service, Service::kRefused);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen) << "beyond the rate";
  EXPECT_EQ(out.outcomes[2].service, Service::kRefused);
  out = StepAndApply({demand[1], demand[2]});
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
}

// ---- demand that is held is tried

TEST_F(GatheringTest, WhatCannotBeServedIsRefusedAtOnceAndTriedOnce) {
  DemandItem many = Item("team/huge", Spec(1000000, 4, 1), 1);
  many.members = 1000;
  Demand demand = {Item("team/a", Spec(1000, 4, 1), 1), many};
  StepOutput out = StepAndApply(demand);
  EXPECT_TRUE(out.created.empty());
  ASSERT_EQ(out.outcomes.size(), 2u);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(out.outcomes[1].members, 1000);

  const int64_t questions = placement_.questions;
  now_ += absl::Milliseconds(20);
  const StepOutput same = StepAndApply(demand);
  EXPECT_EQ(placement_.questions, questions);
  EXPECT_EQ(same.outcomes[1].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(same.outcomes[1].details, out.outcomes[1].details);

  // What is not charged is not gathered: it is planned, so that it is charged as soon as it can be
  // served.
  demand[1].charged = false;
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
}

TEST_F(GatheringTest, CapsAreLookedAtWhenItIsPlanned) {
  options_.cluster_gpu_limit = 1;
  Restart();
  const Demand demand = {Item("team/two", Spec(1000, 4, 2), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[0].code, Code::kGpuCapReached);
}

TEST_F(GatheringTest, WhatOnlyReservedMachinesServeIsNotRefused) {
  InstanceType reserved = Type("g.1", 4, 16, 1, kDollar);
  reserved.on_demand_micro_usd.reset();
  reserved.reservations = {{"cr-1", "", 1, 0, {}}};
  catalog_ = Catalog::FromTypes({reserved});
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1), Item("team/b", Spec(1001, 4, 1), 1)};
  StepOutput out = StepAndApply(demand);
  // Which of them gets the one that is left is decided when they are planned.
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.reservation, "cr-1");

  // None is left for another pod.
  now_ += absl::Milliseconds(20);
  out = StepAndApply({demand[0], Item("team/c", Spec(1002, 4, 1), 1)});
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
}

TEST_F(HookTest, WhatIsHeldIsTriedAgainWhenTheLastReservedMachineIsTaken) {
  InstanceType reserved = Type("g.1", 4, 16, 1, kDollar);
  reserved.on_demand_micro_usd.reset();
  reserved.reservations = {{"cr-1", "", 2, 0, {}}};
  catalog_ = Catalog::FromTypes({reserved});
  options_.guard.total_burst = 1;
  options_.guard.total_per_minute = 1;
  Restart();
  ASSERT_EQ(StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)}).created.size(), 1u);
  const Demand demand = {Item("team/b", Spec(1001, 4, 1), 1)};
  EXPECT_EQ(StepAndApply(demand).outcomes[0].service, Service::kOpen) << "beyond the rate";
  model::NodeRequest other = The();
  other.meta.name = "written-by-another-process";
  other.meta.uid = "uid-of-other";
  requests_.emplace(other.meta.name, other);
  StepAndApply(demand);
  const StepOutput out = StepAndApply(demand);
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
}

TEST_F(GatheringTest, PodsThatLookAtOthersAreNotTried) {
  auto beside = std::make_shared<model::PodSpec>(*Spec(1000000, 4, 1));
  beside->pod_affinity.emplace_back();
  const StepOutput out = StepAndApply({Item("team/beside", beside, 1)});
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
}

TEST_F(GatheringTest, OtherOffersAreTriedAgain) {
  const Demand demand = {Item("team/b200", Spec(1000, 4, 1, {{"kind", "b200"}}), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  model::NodePool pool;
  pool.meta.name = "b200";
  pool.labels.Set("kind", "b200");
  pools_.push_back(pool);
  now_ += absl::Milliseconds(20);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
}

TEST_F(HookTest, WhatIsBeyondTheRateAndCannotBeServedIsRefused) {
  options_.guard.total_burst = 1;
  options_.guard.total_per_minute = 1;
  Restart();
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  const StepOutput out = StepAndApply(
      {Item("team/b", Spec(1000, 4, 1), 1), Item("team/huge", Spec(100'000'000, 4, 1), 1)});
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("rate"), std::string::npos);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
}

// ---- rate

// The plan's nodes for the second pod of a kind are dropped; the cap that they would have taken is
// left for the other kind.
TEST_F(HookTest, CapThatTheRateLeavesIsNotToldAsReached) {
  options_.guard.burst = 1;
  for (const bool by_cost : {false, true}) {
    SCOPED_TRACE(by_cost ? "cost" : "nodes");
    requests_.clear();
    nodes_.clear();
    options_.max_nodes = by_cost ? model::kUnlimited : 2;
    options_.cost_limit_micro_usd_per_hour = by_cost ? 2 * kDollar : model::kUnlimited;
    Restart();
    const auto kind = Spec(3000, 4, 1);
    const DemandItem other = Item("team/other", Spec(1001, 4, 1), 1);
    StepOutput out = StepAndApply({Item("team/a", kind, 1), Item("team/b", kind, 1), other});
    EXPECT_EQ(out.created.size(), 1u);
    EXPECT_NE(DetailsOf(out.outcomes[1]).find("rate"), std::string::npos);
    EXPECT_EQ(out.outcomes[2].code, Code::kInsufficientCapacity);
    EXPECT_EQ(DetailsOf(out.outcomes[2]), "more nodes are requested in the next step; ");
    EXPECT_LE(out.wake_at, now_);
    out = StepAndApply({Item("team/b", kind, 1), other});
    EXPECT_EQ(out.created.size(), 1u);
    EXPECT_EQ(out.outcomes[1].code, Code::kNodesRequested);
  }
}

// ---- purchases that did not help

TEST_F(HookTest, NodeThatDoesNotHelpItsPodIsNotProvisionedAgain) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  int created = 0;
  StepOutput out;
  // Two types could run it. The engine pipelines the pod to neither.
  for (; now_ < kStart + absl::Minutes(50); now_ += absl::Seconds(5)) {
    out = StepAndApply(demand);
    created += static_cast<int>(out.created.size());
    for (auto& [name, node] : nodes_) node.needed = false;
    Answer(false, absl::OkStatus());
    for (const auto& launch : All<model::LaunchNode>(out)) {
      Launched(launch);
    }
  }
  EXPECT_LE(created, 4);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("did not help"), std::string::npos)
      << DetailsOf(out.outcomes[0]);
  // Another pod is another demand.
  out = StepAndApply({Item("team/b", Spec(1001, 4, 1), 1)});
  EXPECT_EQ(out.created.size(), 1u);
}

// A cloud whose nodes no pod can use. Equal pods come one after the other; the engine pipelines
// them, the first ones first, to nodes that are still on order.
class UselessNodesTest : public HookTest {
 protected:
  // Each item takes a node. Returns how many nodes were provisioned.
  int Run(const std::function<DemandItem(int)>& item, int items) {
    int created = 0;
    for (int second = 0; second < 1800; second += 5, now_ += absl::Seconds(5)) {
      const int here = std::min(items, 1 + second / 10);
      int coming = 0;
      for (auto& [name, node] : nodes_) {
        const auto request = requests_.find(name);
        const bool there = request != requests_.end() &&
                           request->second.launched_at.value_or(now_) + absl::Seconds(60) <= now_;
        node.registered = node.registered || there;
        node.ready = node.registered;
        node.needed = !node.registered && coming < here;
        coming += node.needed ? 1 : 0;
      }
      Demand demand;
      for (int i = coming; i < here; ++i) demand.push_back(item(i));
      const StepOutput out = StepAndApply(demand);
      created += static_cast<int>(out.created.size());
      Answer(false, absl::OkStatus());
      for (const auto& launch : All<model::LaunchNode>(out)) {
        Launched(launch);
      }
    }
    return created;
  }
};

TEST_F(UselessNodesTest, EqualPodsDoNotProvisionThemInTurns) {
  const auto pod = [](int i) { return Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1); };
  EXPECT_LE(Run(pod, 6), 2 * 6) << "each of the two types once";
}

TEST_F(UselessNodesTest, EqualGangsDoNotProvisionThemInTurns) {
  catalog_ = Catalog::FromTypes({Type("g.4", 16, 64, 4, kDollar)});
  Restart();
  const auto gang = [](int i) {
    return Item(absl::StrCat("team/g", 100 + i), Spec(1000, 4, 1), 4, /*atomic=*/true);
  };
  EXPECT_LE(Run(gang, 6), 6);
}

// What is left of a former purchase does not help a gang that needs more.
TEST_F(HookTest, IdleNodeThatIsTooSmallForAGangIsNoProofAgainstItsType) {
  StepAndApply({Item("team/g1", Spec(1000, 4, 1), 2, /*atomic=*/true)});
  ASSERT_EQ(requests_.size(), 2u);
  for (auto& [name, node] : nodes_) {
    node = Arrived(name, name);
    node.needed = name == requests_.begin()->first;
  }
  StepAndApply();
  for (int i = 0; i < 3; ++i, now_ += absl::Seconds(20)) {
    const StepOutput out = Step({Item("team/g2", Spec(1000, 4, 1), 2, /*atomic=*/true)});
    EXPECT_EQ(out.created.size(), 2u);
    for (const auto& node : out.created) EXPECT_EQ(node.request.instance_type, "g.1");
  }
}

// Pods that come first have taken two of three nodes that were provisioned for a gang.
class TakenNodesTest : public HookTest {
 protected:
  void ExpectOthersAreProvisioned(bool restart, int64_t missing) {
    const auto gang = [](int64_t pods) {
      return Item("team/g", Spec(1000, 4, 1), pods, /*atomic=*/true);
    };
    StepAndApply({gang(3)});
    ASSERT_EQ(requests_.size(), 3u);
    const std::string left = requests_.begin()->first;
    for (auto& [name, node] : nodes_) node.needed = name != left;
    if (restart) Restart();
    // While the nodes boot, and when they are there.
    for (int i = 0; i < 4; ++i, now_ += absl::Seconds(10)) {
      for (auto& [name, node] : nodes_) {
        const bool needed = node.needed;
        if (i == 2) node = Arrived(name, name);
        node.needed = needed;
      }
      const StepOutput out = Step({gang(missing)});
      ASSERT_EQ(std::ssize(out.created), missing) << i << " " << DetailsOf(out.outcomes[0]);
      for (const auto& node : out.created) EXPECT_EQ(node.request.instance_type, "g.1");
    }
  }
};

TEST_F(TakenNodesTest, AreReplaced) { ExpectOthersAreProvisioned(false, 3); }
TEST_F(TakenNodesTest, AreReplacedAfterARestart) { ExpectOthersAreProvisioned(true, 3); }
// The third of its pods would go to the node that is left.
TEST_F(TakenNodesTest, AreReplacedAfterARestartBesideTheOneThatIsLeft) {
  ExpectOthersAreProvisioned(true, 2);
}

TEST_F(HookTest, NodeThatHelpedMayBeProvisionedAgain) {
  BuyReady();
  for (int i = 0; i < 5; ++i) {
    StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
    for (auto& [name, node] : nodes_) node = Arrived(name, name);
    for (auto& [name, node] : nodes_) node.needed = true;
    now_ += absl::Minutes(1);
    StepAndApply();
  }
  EXPECT_EQ(requests_.size(), 6u);
}

TEST_F(HookTest, RestartKnowsFromTheObjectsWhatDoesNotHelp) {
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const StepOutput out = StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  for (const auto& node : out.created) EXPECT_NE(node.request.instance_type, "g.1");
}

// A preference does not decide where a pod may run.
TEST_F(HookTest, PodWithAnotherPreferenceIsNoOtherPod) {
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  for (int i = 0; i < 4; ++i, now_ += absl::Seconds(5)) StepAndApply(demand);
  auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
  spec->preferred_node_terms.resize(1);
  for (const auto& node : StepAndApply({Item("team/b", spec, 1)}).created) {
    EXPECT_NE(node.request.instance_type, "g.1");
  }
}

// Pods that are never equal, on a cloud whose nodes none of them can use. A test of the total cost:
// of six hours.
class VariedPodsTest : public HookTest {
 protected:
  VariedPodsTest() {
    catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
    Restart();
  }
  // Every 10 s the process ends if `restarts`, or its configuration is read again if `reloads`.
  int Run(bool restarts, bool reloads) {
    int created = 0;
    for (; now_ < kStart + absl::Hours(6); now_ += absl::Seconds(10)) {
      for (auto& [name, node] : nodes_) {
        node.needed = false;
        node.registered = node.ready =
            requests_.at(name).launched_at.value_or(now_) + absl::Seconds(60) <= now_;
      }
      auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
      model::Add(spec->requests, model::kMemoryName, made_++ / 30);
      // Its workload is another pod every five minutes.
      const StepOutput out = StepAndApply({Item(absl::StrCat("team/p", made_ / 30), spec, 1)});
      created += static_cast<int>(out.created.size());
      Answer(false, absl::OkStatus());
      for (const auto& launch : All<model::LaunchNode>(out)) {
        Launched(launch);
      }
      StepAndApply();
      if (restarts) Restart();
      if (reloads) Reload();
    }
    return created;
  }
  int64_t made_ = 0;
};

TEST_F(VariedPodsTest, QueueWhosePurchasesDoNotHelpIsOnTrial) {
  EXPECT_LE(Run(/*restarts=*/false, /*reloads=*/false), 3 + 6 + 6)
      << "three, six in the first two hours, then one an hour";
}

TEST_F(VariedPodsTest, ReloadDoesNotEndATrial) {
  EXPECT_LE(Run(/*restarts=*/false, /*reloads=*/true), 3 + 6 + 6);
}

TEST_F(VariedPodsTest, RestartDoesNotEndATrial) {
  const int created = Run(/*restarts=*/true, /*reloads=*/false);
  EXPECT_LE(created, 6 * 10) << "the requests of an hour are remembered";
}

TEST_F(HookTest, QueueThatWasHelpedIsNotOnTrial) {
  int created = 0;
  for (int i = 0; i < 20; ++i, now_ += absl::Minutes(1)) {
    const Demand demand = {Item(absl::StrCat("team/p", i), Spec(1000 + i, 4, 1), 1)};
    created += static_cast<int>(StepAndApply(demand).created.size());
    for (auto& [name, node] : nodes_) {
      node = Arrived(name, name);
      node.needed = i % 4 == 3;  // one in four helps
    }
    for (int step = 0; step < 3; ++step, now_ += absl::Seconds(10)) {
      StepAndApply(i % 4 == 3 ? Demand() : demand);
    }
  }
  EXPECT_GE(created, 15);
}

// ---- what is left for the next process

TEST_F(HookTest, MachineThatDidNotHelpLeavesItsRequestForTheNextProcess) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
  Restart();
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  for (int i = 0; i < 60 && ThePhase() != Phase::kGone; ++i, now_ += absl::Seconds(10)) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    if (!All<model::TerminateNode>(out).empty()) {
      EXPECT_EQ(The().failure, "Unhelpful") << "stored before the machine ends";
      Answer(false, absl::OkStatus());
      nodes_.clear();
    }
  }
  ASSERT_EQ(ThePhase(), Phase::kGone);
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
  Restart();
  const absl::Time restart = now_;
  for (; now_ < restart + absl::Minutes(50); now_ += absl::Minutes(1)) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty()) << now_;
    EXPECT_NE(DetailsOf(out.outcomes[0]).find("did not help"), std::string::npos);
  }
  now_ = restart + absl::Hours(1);
  StepTwice();
  EXPECT_TRUE(requests_.empty()) << "not for ever";
}

TEST_F(HookTest, RecordThatIsDeletedGoesAtOnce) {
  BuyReady();
  The().phase = Phase::kGone;
  The().failure = "Unhelpful";
  The().failed_at = now_;
  nodes_.clear();
  Restart();
  StepTwice();
  ASSERT_EQ(requests_.size(), 1u);
  The().meta.deletion = now_;
  StepTwice();
  EXPECT_TRUE(requests_.empty());
}

// ---- rate and total

TEST_F(HookTest, RateOfOneSizeIsLimited) {
  options_.guard.burst = 10;
  options_.guard.per_minute = 6;
  Restart();
  size_t created = 0;
  StepOutput out;
  for (int i = 0; i < 120; ++i, now_ += absl::Seconds(1)) {
    out = StepAndApply({Item(absl::StrCat("team/p", i), Spec(1000, 4, 1), 1)});
    created += out.created.size();
  }
  EXPECT_EQ(created, 10u + 11u) << "the burst, and one more every ten seconds";
  EXPECT_LT(out.wake_at, now_ + absl::Seconds(11));
  EXPECT_EQ(StepAndApply({Item("team/other", Spec(2001, 4, 1), 1)}).created.size(), 1u)
      << "another size has its own";
}

TEST_F(HookTest, RateHoldsWithinOnePlan) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 32, 1, kDollar)});
  options_.guard.burst = 8;
  options_.guard.per_minute = 6;
  Restart();
  Demand demand;
  for (int i = 0; i < 24; ++i) {
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
  }
  demand.push_back(Item("team/other", Spec(2001, 4, 1), 1));
  const StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.created.size(), 8u + 1u) << "another size has its own";
  for (size_t i = 0; i < demand.size(); ++i) {
    const bool held = i >= 8 && i < 24;
    EXPECT_EQ(out.outcomes[i].node_requests.size(), held ? 0u : 1u) << i;
    EXPECT_EQ(DetailsOf(out.outcomes[i]).find("rate of provisioning") != std::string::npos, held);
  }
  std::set<std::string> named, created;
  for (const DemandOutcome& outcome : out.outcomes) {
    named.insert(outcome.node_requests.begin(), outcome.node_requests.end());
  }
  for (const auto& node : out.created) created.insert(node.request.meta.name);
  EXPECT_EQ(named, created);
  EXPECT_LE(out.wake_at, now_ + absl::Seconds(10));
}

// Users can give each pod other requests, selectors, tolerations and terms.
TEST_F(HookTest, PodsThatDifferByAByteShareOneRate) {
  options_.guard.burst = 10;
  options_.guard.per_minute = 6;
  Restart();
  Demand demand;
  for (int i = 0; i < 40; ++i) {
    auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
    if (i % 3 == 0) model::Add(spec->requests, model::kMemoryName, i);
    if (i % 3 == 1) spec->tolerations = {{absl::StrCat("key-", i), true, "", std::nullopt}};
    if (i % 3 == 2) spec->preferred_node_terms.resize(static_cast<size_t>(i));
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), spec, 1));
  }
  EXPECT_EQ(StepAndApply(demand).created.size(), 10u);
  for (DemandItem& item : demand) item.queue = "another";
  EXPECT_EQ(StepAndApply(demand).created.size(), 10u) << "another queue has its own";
}

// Sizes can be varied, too.
TEST_F(HookTest, RateOfAllPodsTogetherIsLimited) {
  options_.guard.total_burst = 10;
  options_.guard.total_per_minute = 6;
  Restart();
  size_t created = 0;
  StepOutput out;
  for (int i = 0; i < 120; ++i, now_ += absl::Seconds(1)) {
    DemandItem item = Item(absl::StrCat("team/p", i), Spec(int64_t{1} << i % 11, 4, 1), 1);
    item.queue = absl::StrCat("q", i % 7);
    out = StepAndApply({item});
    created += out.created.size();
  }
  EXPECT_EQ(created, 10u + 11u) << "the burst, and one more every ten seconds";
  EXPECT_LT(out.wake_at, now_ + absl::Seconds(11));
}

// Each life provisions what the former one has given up meanwhile.
class RateTest : public HookTest {
 protected:
  // Nodes that are provisioned in a minute of 20 lives, each of which wants 10: 10 at once are
  // allowed, and 6 a minute.
  size_t CreatedInAMinute(const std::function<void()>& begin_next_life) {
    options_.guard.burst = 10;
    options_.guard.per_minute = 6;
    Restart();
    size_t created = 0;
    for (int life = 0; life < 20; ++life, now_ += absl::Seconds(3)) {
      Demand demand;
      for (int i = 0; i < 10; ++i) {
        demand.push_back(Item(absl::StrCat("team/p", life, "-", i), Spec(1000, 4, 1), 1));
      }
      created += StepAndApply(demand).created.size();
      begin_next_life();
    }
    return created;
  }
};

TEST_F(RateTest, RestartsDoNotRaiseIt) {
  EXPECT_LE(CreatedInAMinute([this] { Restart(); }), 10u + 6u);
}

TEST_F(RateTest, ReloadContinuesIt) {
  EXPECT_EQ(CreatedInAMinute([this] { Reload(); }), 10u + 5u)
      << "what is found is not counted twice";
}

TEST_F(HookTest, GangIsNeverCutByTheRate) {
  options_.guard.burst = options_.guard.total_burst = 10;
  Restart();
  EXPECT_EQ(StepAndApply({Item("team/gang", Spec(1000, 4, 1), 64, true)}).created.size(), 64u);
}

TEST_F(HookTest, TotalOfNodesIsCapped) {
  options_.max_nodes = 3;
  Restart();
  const StepOutput out = StepAndApply(
      {Item("team/gang", Spec(1000, 4, 1), 4, true), Item("team/p", Spec(1000, 4, 1), 5)});
  EXPECT_EQ(out.created.size(), 3u);
  EXPECT_TRUE(out.outcomes[0].node_requests.empty()) << "a gang is whole or nothing";
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("hook.maxNodes"), std::string::npos)
      << DetailsOf(out.outcomes[0]);
}

// ---- shapes

TEST_F(HookTest, SmallerNodesAreLearnedAndSurviveARestart) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 32, 1, kDollar)});
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 31, 1), 1)};
  StepAndApply(demand);
  ASSERT_EQ(requests_.size(), 1u);
  StepAndApply();
  Answer(true, absl::OkStatus());
  NodeUse& node = nodes_.at(TheName());
  node = Arrived(TheName(), TheName());
  node.allocatable = {
      {"cpu", 4000}, {"memory", 29 * kGiB}, {"nvidia.com/gpu", 1000}, {"pods", 110}};
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(model::Get(The().allocatable, "memory"), 29 * kGiB);
  for (int life = 0; life < 2; ++life) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
    EXPECT_NE(DetailsOf(out.outcomes[0])
                  .find("nodes of type g.1 have 29Gi of memory instead of 32Gi of memory"),
              std::string::npos)
        << DetailsOf(out.outcomes[0]);
    const StepOutput fits = StepAndApply({Item("team/b", Spec(1000, 28, 1), 1)});
    EXPECT_EQ(fits.created.size(), 1u);
    EXPECT_EQ(model::Get(fits.created.at(0).node.allocatable, "memory"), 29 * kGiB)
        << "what is promised is what comes";
    Restart();
    std::erase_if(requests_, [](const auto& r) { return r.second.phase != Phase::kReady; });
    std::erase_if(nodes_, [&](const auto& n) { return !requests_.contains(n.first); });
  }
}

TEST_F(HookTest, NodeWithSomeOfItsDevicesIsUsedAsItIsAfterItsTime) {
  BuyLaunched();
  NodeUse& node = nodes_.at(TheName());
  node.registered = node.usable_in_part = true;
  now_ += options_.ready_timeout;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
}

// ---- providers

TEST_F(HookTest, NoProviderIsAHookThatIsOff) {
  options_.provider.clear();
  Restart();
  EXPECT_TRUE(Step({Item("team/a", Spec(1000, 4, 1), 1)}).actions.empty());
  options_.enabled = false;
  EXPECT_TRUE(CheckProvider(options_, "hook.provider").ok());
  options_.enabled = true;
  const absl::Status missing = CheckProvider(options_, "hook.provider");
  EXPECT_EQ(missing.message(),
            "hook.provider: must be set if the hook is enabled; known providers: aws, kwok");
  options_.provider = "gce";
  const absl::Status unknown = CheckProvider(options_, "hook.provider");
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_EQ(unknown.message(),
            "hook.provider: \"gce\" is not a known provider; known providers: aws, kwok");
}

TEST_F(HookTest, PoolOfAnUnknownProviderOffersNothing) {
  model::NodePool pool;
  pool.meta.name = "cloud";
  pool.provider = "gce";
  pools_ = {pool};
  const StepOutput out = StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  EXPECT_TRUE(out.created.empty());
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("NodePool cloud: spec.provider \"gce\""),
            std::string::npos)
      << DetailsOf(out.outcomes[0]);
}

}  // namespace
}  // namespace fairlead::hook
