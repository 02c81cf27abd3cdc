// Nodes that have pods and are replaced by cheaper ones, which are provisioned for that.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/emptying.h"
#include "autoscale-hook/machines/replacement.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using ::testing::HasSubstr;
using testing::HookTest;
using ::testing::IsEmpty;
using testing::Item;
using testing::kDollar;
using testing::kGiB;
using ::testing::SizeIs;
using testing::Spec;
using testing::Type;

TEST(Pays, WhatIsSavedHasToBeMoreThanWhatItCosts) {
  const auto pays = [](int64_t old_price, int64_t new_price, absl::Duration lost,
                       absl::Duration boot) {
    ReplacementPrices prices;
    prices.Add(old_price, lost);
    prices.new_price = new_price;
    prices.boot = boot;
    return Pays(prices, absl::Hours(1));
  };
  EXPECT_TRUE(pays(4 * kDollar, kDollar, absl::Minutes(2), absl::Minutes(5)));
  EXPECT_FALSE(pays(kDollar, kDollar, {}, {})) << "nothing is saved";
  EXPECT_FALSE(pays(kDollar, 2 * kDollar, {}, {}));
  EXPECT_FALSE(pays(100, 91, {}, {})) << "not worth the trouble";
  EXPECT_TRUE(pays(100, 90, {}, {}));
  // Saves 3 dollars; an hour of the old node is 4.
  EXPECT_TRUE(pays(4 * kDollar, kDollar, absl::Minutes(44), {}));
  EXPECT_FALSE(pays(4 * kDollar, kDollar, absl::Minutes(45), {}));
  // Saves 1 dollar; both are paid for while the new one boots.
  EXPECT_TRUE(pays(2 * kDollar, kDollar, {}, absl::Minutes(59)));
  EXPECT_FALSE(pays(2 * kDollar, kDollar, {}, absl::Hours(1)));
  EXPECT_TRUE(pays(kDollar, 0, absl::Minutes(59), absl::Hours(9))) << "paid for anyway";
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(pays(most, 0, {}, {}));
  EXPECT_FALSE(pays(most, most, absl::InfiniteDuration(), absl::InfiniteDuration()));
}

// The pods of a node are a number of GPUs. `room` of them fit on nodes that stay.
class GpuEvacuation : public Evacuation {
 public:
  Occupants OccupantsOf(const std::string& node) override {
    const auto known = occupants.find(node);
    return known == occupants.end() ? Occupants() : known->second;
  }
  bool FindRoom(const std::vector<std::string>& nodes) override { return GpusOf(nodes) <= room; }
  model::ResourceList RequestsOf(const std::vector<std::string>& nodes) override {
    return {{model::kGpuName, 1000 * GpusOf(nodes)}};
  }
  bool FitOn(const std::vector<std::string>& nodes, const model::Node& node) override {
    ++asked;
    return GpusOf(nodes) * 1000 <= model::Get(node.allocatable, model::kGpuName);
  }
  int64_t GpusOf(const std::vector<std::string>& nodes) const {
    int64_t gpus = 0;
    for (const std::string& node : nodes) {
      if (const auto known = occupants.find(node); known != occupants.end()) {
        gpus += known->second.staying;
      }
    }
    return gpus;
  }
  std::map<std::string, Occupants> occupants;
  int64_t room = 0;
  int asked = 0;
};

class ReplacementTest : public HookTest {
 protected:
  ReplacementTest() {
    options_.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
    evacuation_ = &evacuated_;
    Sell({Type("g.4", 32, 128, 4, 4 * kDollar), Type("g.1", 8, 32, 1, kDollar)});
    Restart();
  }
  void Sell(std::vector<InstanceType> types) { catalog_ = Catalog::FromTypes(std::move(types)); }

  void BecomeReady(const std::string& name) {
    NodeUse& node = nodes_.at(name);
    node.registered = node.ready = true;
    node.uid = absl::StrCat("uid-of-", name);
    for (const auto& [resource, amount] :
         {std::pair(model::kGpuName, int64_t{4000}), std::pair(model::kCpuName, int64_t{32000}),
          std::pair(model::kMemoryName, 128 * kGiB), std::pair(model::kPodsName, int64_t{110})}) {
      model::Set(node.allocatable, resource, amount);
    }
  }
  void Occupy(const std::string& name, int64_t gpus) {
    nodes_.at(name).needed = nodes_.at(name).needed_by_pods_alone = true;
    evacuated_.occupants[name] = {.blocked_by = "", .staying = gpus, .lost_work = absl::Minutes(1)};
  }
  void Vacate(const std::string& name) {
    nodes_.at(name).needed = nodes_.at(name).needed_by_pods_alone = false;
    evacuated_.occupants.erase(name);
  }
  // A node with four GPUs, of which one is in use after its other pods have ended.
  std::string RunOnBig() {
    StepAndApply({Item("team/a", Spec(1000, 4, 4), 1)});
    for (const model::LaunchNode& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
    StepAndApply();
    const std::string name = TheName();
    BecomeReady(name);
    Occupy(name, 1);
    StepTwice();
    EXPECT_EQ(The().phase, Phase::kReady);
    EXPECT_EQ(The().instance_type, "g.4");
    return name;
  }
  // Steps every 10 s; the nodes that are told to be emptied.
  std::vector<std::string> RunFor(absl::Duration time) {
    std::vector<std::string> emptied;
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(10)) {
      const StepOutput out = StepAndApply();
      for (const model::LaunchNode& launch : All<model::LaunchNode>(out)) {
        launched_.push_back(launch.request->meta.name);
        if (answers_launches_) Launched(launch);
      }
      for (const StepOutput::EmptiedNode& node : out.emptied) emptied.push_back(node.name);
      for (auto& [name, node] : nodes_) {
        if (node.registered || !requests_.contains(name)) continue;
        node.needed = false;  // the engine knows nothing of it
      }
    }
    return emptied;
  }
  // The request that replaces the node; null: there is none.
  const model::NodeRequest* ReplacementOf(const std::string& name) const {
    for (const auto& [key, request] : requests_) {
      if (!request.replaces.empty() && request.replaces.front().name == name) return &request;
    }
    return nullptr;
  }
  // The big node, and the name of the request that is to take its place, launched.
  std::pair<std::string, std::string> Replace() {
    const std::string old = RunOnBig();
    RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
    const model::NodeRequest* replacement = ReplacementOf(old);
    EXPECT_NE(replacement, nullptr);
    return {old, replacement == nullptr ? "" : replacement->meta.name};
  }

  GpuEvacuation evacuated_;
  std::vector<std::string> launched_;
  bool answers_launches_ = true;
};

TEST_F(ReplacementTest, NothingIsRequestedUnlessThePoolPermitsIt) {
  options_.disruption.consolidation.reset();
  Restart();
  RunOnBig();
  RunFor(absl::Hours(2));
  EXPECT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(evacuated_.asked, 0);
}

TEST_F(ReplacementTest, TheNewMachineComesFirstAndThenTheOldOneGoes) {
  const std::string old = RunOnBig();
  RunFor(options_.unneeded_after - absl::Seconds(10));
  EXPECT_THAT(requests_, SizeIs(1)) << "it has to be so for a while";
  RunFor(3 * NodeEmptying::kLookEvery);
  const model::NodeRequest* replacement = ReplacementOf(old);
  ASSERT_NE(replacement, nullptr);
  const std::string name = replacement->meta.name;
  EXPECT_EQ(replacement->instance_type, "g.1");
  EXPECT_EQ(replacement->replaces,
            (std::vector<model::ReplacedRequest>{{old, requests_.at(old).meta.uid}}));
  EXPECT_EQ(replacement->queue, "q");
  EXPECT_THAT(replacement->reason_workloads, IsEmpty());
  EXPECT_THAT(RunFor(absl::Minutes(10)), IsEmpty()) << "the new one boots";
  EXPECT_EQ(requests_.at(name).phase, Phase::kLaunched) << "nothing needs it, and it is kept";
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 1;
  now_ += absl::Seconds(1);
  StepTwice();
  EXPECT_TRUE(nodes_.at(old).removal_tainted);
  EXPECT_THAT(requests_.at(old).message, HasSubstr("for $1.00 an hour instead of $4.00"));
  EXPECT_THAT(RunFor(absl::Seconds(10)), ::testing::Contains(old));
  Vacate(old);
  StepTwice();
  EXPECT_EQ(requests_.at(old).phase, Phase::kDraining);
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
  // The pods come there.
  Occupy(name, 1);
  Answer(false, absl::OkStatus());
  nodes_.erase(old);
  RunFor(absl::Hours(3));
  EXPECT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(TheName(), name);
}

TEST_F(ReplacementTest, WhatIsNoCheaperIsNotBought) {
  Sell({Type("g.4", 32, 128, 4, 4 * kDollar), Type("g.2", 16, 64, 2, 3'700'000)});
  Restart();
  RunOnBig();
  RunFor(absl::Hours(2));
  EXPECT_THAT(requests_, SizeIs(1)) << "7.5 per cent";
}

TEST_F(ReplacementTest, WorkThatWouldBeLostWeighs) {
  const std::string old = RunOnBig();
  evacuated_.occupants[old].lost_work = absl::Minutes(50);
  RunFor(absl::Hours(2));
  EXPECT_THAT(requests_, SizeIs(1));
}

TEST_F(ReplacementTest, WhatFitsElsewhereGoesThereAndNothingIsBought) {
  const std::string old = RunOnBig();
  evacuated_.room = 1;
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  EXPECT_EQ(ReplacementOf(old), nullptr);
  EXPECT_TRUE(nodes_.at(old).removal_tainted);
}

TEST_F(ReplacementTest, ThePodsHaveToFitOnTheOneMachine) {
  const std::string old = RunOnBig();
  Occupy(old, 2);
  RunFor(absl::Hours(1));
  EXPECT_EQ(ReplacementOf(old), nullptr);
}

TEST_F(ReplacementTest, BothMachinesCountAgainstTheCaps) {
  struct Case {
    const char* what;
    std::function<void(HookOptions&)> cap;
  };
  const Case cases[] = {
      {"GPUs", [](HookOptions& options) { options.cluster_gpu_limit = 4; }},
      {"dollars", [](HookOptions& options) { options.cost_limit_micro_usd_per_hour = 4'500'000; }},
      {"nodes", [](HookOptions& options) { options.max_nodes = 1; }},
  };
  const HookOptions open = options_;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    requests_.clear();
    nodes_.clear();
    evacuated_ = {};
    options_ = open;
    c.cap(options_);
    Restart();
    RunOnBig();
    RunFor(absl::Hours(1));
    EXPECT_THAT(requests_, SizeIs(1));
  }
}

TEST_F(ReplacementTest, TheCapOfTheQueueCountsBoth) {
  queue_caps_ = {{"q", {"q"}, 4, model::kUnlimited}};
  const std::string old = RunOnBig();
  RunFor(absl::Hours(1));
  EXPECT_EQ(ReplacementOf(old), nullptr);
  queue_caps_.front().gpus = 5;
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  EXPECT_NE(ReplacementOf(old), nullptr);
}

TEST_F(ReplacementTest, NothingBeginsWhileWorkloadsWait) {
  const std::string old = RunOnBig();
  const Demand demand = {Item("team/z", Spec(64000, 4, 1), 1)};  // fits nowhere
  for (int i = 0; i < 100; ++i, now_ += absl::Seconds(10)) StepAndApply(demand);
  EXPECT_EQ(ReplacementOf(old), nullptr);
}

TEST_F(ReplacementTest, ABudgetHoldsIt) {
  pools_.emplace_back();
  pools_.front().meta.name = "p";
  pools_.front().disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
  pools_.front().disruption.budgets.emplace_back().nodes = 0;
  const std::string old = RunOnBig();
  RunFor(absl::Hours(1));
  EXPECT_EQ(ReplacementOf(old), nullptr);
}

TEST_F(ReplacementTest, FromSpotToSpotNothingIsReplaced) {
  InstanceType big = Type("g.4", 32, 128, 4, 9 * kDollar),
               small = Type("g.1", 8, 32, 1, 4 * kDollar);
  big.spot_micro_usd = 3 * kDollar;
  small.spot_micro_usd = kDollar;
  Sell({big, small});
  Restart();
  pools_.emplace_back();
  pools_.front().meta.name = "p";
  pools_.front().allow_spot = true;
  const std::string old = RunOnBig();
  ASSERT_TRUE(requests_.at(old).spot);
  RunFor(absl::Hours(1));
  EXPECT_EQ(ReplacementOf(old), nullptr);
}

TEST_F(ReplacementTest, AReservedMachineThatBecomesFreeTakesThePlaceOfOneOnDemand) {
  InstanceType big = Type("g.4", 32, 128, 4, 4 * kDollar);
  Sell({big});
  Restart();
  const std::string old = RunOnBig();
  big.reservations = {{"cr-1", "", 1, 0, {}}};
  Sell({big});
  Reload();
  StepTwice();
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  const model::NodeRequest* replacement = ReplacementOf(old);
  ASSERT_NE(replacement, nullptr);
  EXPECT_EQ(replacement->reservation, "cr-1");
}

TEST_F(ReplacementTest, AStockOutLeavesTheOldNodeAndIsNotTriedAgainAtOnce) {
  answers_launches_ = false;
  const auto [old, name] = Replace();
  hook_->OnProviderResult({name, requests_.at(name).meta.uid, "", true},
                          absl::ResourceExhaustedError("none left"), now_);
  RunFor(absl::Minutes(1));
  EXPECT_THAT(requests_.at(old).message, HasSubstr("not replaced"));
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
  launched_.clear();
  RunFor(absl::Minutes(25));
  EXPECT_THAT(launched_, IsEmpty()) << "a pause";
  answers_launches_ = true;
  RunFor(absl::Minutes(20));
  EXPECT_THAT(launched_, SizeIs(1)) << "and again";
}

TEST_F(ReplacementTest, IfThePodsDoNotFitInTheEndTheNewMachineIsGivenBack) {
  const auto [old, name] = Replace();
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 0;  // its node is smaller than it was said
  RunFor(absl::Seconds(30));
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
  EXPECT_TRUE(nodes_.at(name).removal_tainted) << "at once";
  EXPECT_EQ(requests_.at(name).phase, Phase::kDraining);
  EXPECT_EQ(requests_.at(old).phase, Phase::kReady);
  EXPECT_THAT(requests_.at(old).message, HasSubstr("not replaced: its pods have no room"));
}

TEST_F(ReplacementTest, WhatOthersUseMeanwhileStaysWithThem) {
  const auto [old, name] = Replace();
  BecomeReady(name);
  Occupy(name, 1);
  evacuated_.room = 0;
  RunFor(absl::Minutes(20));
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
  EXPECT_EQ(requests_.at(old).phase, Phase::kReady);
  EXPECT_FALSE(nodes_.at(name).removal_tainted);
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
}

TEST_F(ReplacementTest, APodThatMayNotBeMovedNowIsWaitedForAndThenNotAnyMore) {
  const auto [old, name] = Replace();
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 1;
  evacuated_.occupants[old].blocked_by = "a PodDisruptionBudget";
  RunFor(NodeReplacement::kPatience - absl::Seconds(20));
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
  EXPECT_FALSE(nodes_.at(name).removal_tainted);
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
  RunFor(absl::Minutes(1));
  EXPECT_TRUE(nodes_.at(name).removal_tainted);
  EXPECT_FALSE(nodes_.at(old).removal_tainted);
  EXPECT_THAT(requests_.at(old).message, HasSubstr("could not be moved in time"));
}

TEST_F(ReplacementTest, ItGoesOnWhenThePodMayBeMoved) {
  const auto [old, name] = Replace();
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 1;
  evacuated_.occupants[old].blocked_by = "a PodDisruptionBudget";
  RunFor(absl::Minutes(2));
  evacuated_.occupants[old].blocked_by = "";
  RunFor(absl::Seconds(20));
  EXPECT_TRUE(nodes_.at(old).removal_tainted);
}

TEST_F(ReplacementTest, AfterARestartAtAnyTimeItGoesOn) {
  enum class When { kRequested, kLaunched, kReady, kTainted, kDraining };
  for (const When when :
       {When::kRequested, When::kLaunched, When::kReady, When::kTainted, When::kDraining}) {
    SCOPED_TRACE(static_cast<int>(when));
    requests_.clear();
    nodes_.clear();
    evacuated_ = {};
    launched_.clear();
    Restart();
    const std::string old = RunOnBig();
    while (ReplacementOf(old) == nullptr) RunFor(absl::Seconds(10));
    const std::string name = ReplacementOf(old)->meta.name;
    const auto restart = [&](When at) {
      if (when == at) Restart();
    };
    restart(When::kRequested);
    RunFor(absl::Minutes(2));
    restart(When::kLaunched);
    RunFor(absl::Minutes(2));
    ASSERT_TRUE(requests_.contains(name));
    ASSERT_EQ(requests_.at(name).phase, Phase::kLaunched);
    ASSERT_THAT(requests_, SizeIs(2)) << "and no other";
    BecomeReady(name);
    nodes_.at(name).needed = false;
    evacuated_.room = 1;
    restart(When::kReady);
    RunFor(absl::Seconds(20));
    EXPECT_TRUE(nodes_.at(old).removal_tainted);
    restart(When::kTainted);
    RunFor(absl::Seconds(20));
    EXPECT_TRUE(nodes_.at(old).removal_tainted);
    Vacate(old);
    StepTwice();
    ASSERT_EQ(requests_.at(old).phase, Phase::kDraining);
    restart(When::kDraining);
    RunFor(absl::Seconds(30));
    EXPECT_EQ(requests_.at(name).phase, Phase::kReady) << "the pods are to come";
  }
}

TEST_F(ReplacementTest, AReplacementIsNotReplacedForTheHorizon) {
  Sell({Type("g.4", 32, 128, 4, 4 * kDollar), Type("g.2", 16, 64, 2, 2 * kDollar),
        Type("g.1", 8, 32, 1, kDollar)});
  Restart();
  const std::string old = RunOnBig();
  Occupy(old, 2);
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  ASSERT_NE(ReplacementOf(old), nullptr);
  const std::string name = ReplacementOf(old)->meta.name;
  EXPECT_EQ(requests_.at(name).instance_type, "g.2");
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 2;
  RunFor(absl::Seconds(30));
  Vacate(old);
  Occupy(name, 2);
  StepTwice();
  Answer(false, absl::OkStatus());
  nodes_.erase(old);
  RunFor(absl::Seconds(30));
  ASSERT_THAT(requests_, SizeIs(1));
  Occupy(name, 1);
  evacuated_.room = 0;
  RunFor(absl::Minutes(50));
  EXPECT_EQ(ReplacementOf(name), nullptr);
  RunFor(absl::Minutes(20));
  EXPECT_NE(ReplacementOf(name), nullptr);
}

TEST_F(ReplacementTest, IfTheOldNodeGoesByItselfTheNewOneIsAnOrdinaryNode) {
  const auto [old, name] = Replace();
  requests_.erase(old);
  nodes_.erase(old);
  evacuated_.occupants.erase(old);
  nodes_.at(name).needed = true;  // the pods wait, and are promised to it
  StepTwice();
  BecomeReady(name);
  Occupy(name, 1);
  StepTwice();
  RunFor(absl::Minutes(5));
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
}

TEST_F(ReplacementTest, IfItsPodsEndTheNewMachineIsGivenBack) {
  const auto [old, name] = Replace();
  Vacate(old);
  RunFor(options_.cancel_after + absl::Seconds(20));
  EXPECT_EQ(requests_.at(name).phase, Phase::kDraining);
}

class SeveralNodesTest : public ReplacementTest {
 protected:
  // Two nodes with one pod each: their names.
  std::pair<std::string, std::string> HoldTwo() {
    Sell({Type("g.4", 32, 128, 4, 4 * kDollar), Type("g.2", 16, 64, 2, 5 * kDollar)});
    Restart();
    StepAndApply({Item("team/a", Spec(1000, 4, 4), 2)});
    for (const model::LaunchNode& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
    StepAndApply();
    for (const auto& [name, request] : requests_) {
      BecomeReady(name);
      Occupy(name, 1);
    }
    StepTwice();
    return {requests_.begin()->first, requests_.rbegin()->first};
  }
};

TEST_F(SeveralNodesTest, AreReplacedByOneIfNoneOfThemMayBe) {
  const auto [first, second] = HoldTwo();
  ASSERT_NE(first, second);
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  const model::NodeRequest* replacement = ReplacementOf(first);
  ASSERT_NE(replacement, nullptr);
  ASSERT_THAT(replacement->replaces, SizeIs(2));
  const std::string name = replacement->meta.name;
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 1;
  RunFor(absl::Seconds(20));
  EXPECT_FALSE(nodes_.at(first).removal_tainted) << "only one of them has room";
}

TEST_F(SeveralNodesTest, GoTogether) {
  const auto [first, second] = HoldTwo();
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  ASSERT_NE(ReplacementOf(first), nullptr);
  const std::string name = ReplacementOf(first)->meta.name;
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 2;
  RunFor(absl::Seconds(20));
  EXPECT_TRUE(nodes_.at(first).removal_tainted);
  EXPECT_TRUE(nodes_.at(second).removal_tainted);
  EXPECT_FALSE(nodes_.at(name).removal_tainted);
}

TEST_F(SeveralNodesTest, WhatIsBeingRemovedByItselfIsNotWaitedFor) {
  const auto [first, second] = HoldTwo();
  RunFor(options_.unneeded_after + 2 * NodeEmptying::kLookEvery);
  ASSERT_NE(ReplacementOf(first), nullptr);
  const std::string name = ReplacementOf(first)->meta.name;
  Vacate(first);
  nodes_.at(first).pods_settled = false;  // so it does not go yet
  RunFor(options_.unneeded_after + absl::Seconds(20));
  ASSERT_TRUE(nodes_.at(first).removal_tainted);
  BecomeReady(name);
  nodes_.at(name).needed = false;
  evacuated_.room = 1;
  RunFor(absl::Seconds(20));
  EXPECT_THAT(requests_.at(second).message, HasSubstr("its pods would lose too much"));
  EXPECT_EQ(requests_.at(first).phase, Phase::kReady);
  EXPECT_TRUE(nodes_.at(name).removal_tainted) << "it is as dear as the second alone";
}

// Another leader had requested a machine for the same node, too.
class TwoForOneNodeTest : public ReplacementTest {
 protected:
  // The other one comes first by its name.
  void ReplaceByTwo() {
    std::tie(old_, later_) = Replace();
    first_ = "fl-0000000000000000";
    model::NodeRequest other = requests_.at(later_);
    other.meta.name = first_;
    other.meta.uid = "uid-other";
    other.phase = Phase::kPending;
    requests_[first_] = other;
    NodeUse use;
    use.name = use.node_request = first_;
    nodes_[first_] = use;
  }
  std::string old_, first_, later_;
};

TEST_F(TwoForOneNodeTest, OneGoesAndTheOtherTakesItsPlace) {
  ReplaceByTwo();
  RunFor(options_.cancel_after + absl::Seconds(30));
  EXPECT_EQ(requests_.at(later_).phase, Phase::kDraining);
  EXPECT_NE(requests_.at(first_).phase, Phase::kDraining);
  EXPECT_THAT(requests_.at(old_).message, IsEmpty()) << "it is to be replaced";
  BecomeReady(first_);
  nodes_.at(first_).needed = false;
  evacuated_.room = 1;
  EXPECT_THAT(RunFor(absl::Minutes(1)), ::testing::Contains(old_));
}

TEST_F(TwoForOneNodeTest, TheFailureOfOneIsNotToldWhileTheOtherComes) {
  answers_launches_ = false;
  ReplaceByTwo();
  hook_->OnProviderResult({later_, requests_.at(later_).meta.uid, "", true},
                          absl::ResourceExhaustedError("none left"), now_);
  RunFor(absl::Seconds(20));
  EXPECT_EQ(requests_.at(later_).phase, Phase::kFailed);
  EXPECT_THAT(requests_.at(old_).message, IsEmpty());
}

// In the step in which one of them is cancelled.
TEST_F(TwoForOneNodeTest, NeitherHasFailedIfThePodsEnd) {
  ReplaceByTwo();
  RunFor(options_.cancel_after);
  Vacate(old_);
  RunFor(absl::Seconds(40));
  EXPECT_EQ(requests_.at(later_).phase, Phase::kDraining);
  EXPECT_THAT(requests_.at(old_).message, IsEmpty());
}

}  // namespace
}  // namespace fairlead::hook
