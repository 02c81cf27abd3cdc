// Which nodes go out of service, when, and how many at a time: emptying, budgets, pace, freeze.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/emptying.h"
#include "autoscale-hook/machines/removal.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HookTest;
using ::testing::IsEmpty;
using testing::Item;
using ::testing::SizeIs;
using testing::Spec;

// The pods of a node are a number; `room` of them fit on nodes that stay.
class FakeEvacuation : public Evacuation {
 public:
  Occupants OccupantsOf(const std::string& node) override {
    const auto known = occupants.find(node);
    return known == occupants.end() ? Occupants() : known->second;
  }
  bool FindRoom(const std::vector<std::string>& nodes) override {
    ++looks;
    int64_t pods = 0;
    for (const std::string& node : nodes) pods += OccupantsOf(node).staying;
    return pods <= room;
  }
  model::ResourceList RequestsOf(const std::vector<std::string>&) override { return {}; }
  bool FitOn(const std::vector<std::string>&, const model::Node&) override { return false; }
  std::map<std::string, Occupants> occupants;
  int64_t room = 0;
  int looks = 0;
};

class DisruptionTest : public HookTest {
 protected:
  DisruptionTest() {
    options_.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
    evacuation_ = &evacuated_;
    Restart();
  }
  // That many Ready nodes, each with a pod. Their names, ascending.
  std::vector<std::string> BuyMany(int64_t count) {
    StepAndApply({Item("team/a", Spec(1000, 4, 1), count)});
    for (const model::LaunchNode& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
    StepAndApply();
    std::vector<std::string> names;
    for (const auto& [name, request] : requests_) {
      NodeUse& node = nodes_.at(name);
      node.registered = node.ready = true;
      node.uid = absl::StrCat("uid-of-", name);
      Occupy(name);
      names.push_back(name);
    }
    StepAndApply();
    for (const auto& [name, request] : requests_) EXPECT_EQ(request.phase, Phase::kReady);
    EXPECT_THAT(names, SizeIs(static_cast<size_t>(count)));
    return names;
  }
  void Occupy(const std::string& name) {
    nodes_.at(name).needed = nodes_.at(name).needed_by_pods_alone = true;
    evacuated_.occupants[name] = {.blocked_by = "", .staying = 1, .lost_work = absl::Minutes(2)};
  }
  void Vacate(const std::string& name) {
    nodes_.at(name).needed = nodes_.at(name).needed_by_pods_alone = false;
    evacuated_.occupants.erase(name);
  }
  // Steps until then, every 10 s; names of nodes that were emptied.
  std::set<std::string> RunFor(absl::Duration time) {
    std::set<std::string> emptied;
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(10)) {
      for (const StepOutput::EmptiedNode& node : StepAndApply().emptied) emptied.insert(node.name);
    }
    return emptied;
  }
  std::set<std::string> Tainted() const {
    std::set<std::string> names;
    for (const auto& [name, node] : nodes_) {
      if (node.removal_tainted) names.insert(name);
    }
    return names;
  }

  FakeEvacuation evacuated_;
};

TEST_F(DisruptionTest, NothingIsEmptiedUnlessAPoolOrTheConfigurationSaysSo) {
  options_.disruption.consolidation.reset();
  Restart();
  BuyMany(2);
  evacuated_.room = 10;
  EXPECT_THAT(RunFor(absl::Hours(1)), IsEmpty());
  EXPECT_EQ(evacuated_.looks, 0);
  EXPECT_THAT(Tainted(), IsEmpty());
}

TEST_F(DisruptionTest, AnUnderutilizedNodeIsEmptiedBehindItsFenceAndThenRemoved) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  NodeUse& node = nodes_.at(name);
  node.pods_settled = false;
  EXPECT_THAT(RunFor(options_.unneeded_after), IsEmpty());
  EXPECT_FALSE(node.removal_tainted);
  // Due: closed at once, and tainted.
  now_ += NodeEmptying::kLookEvery;
  const StepOutput out = StepAndApply();
  EXPECT_THAT(out.look_again, ElementsAre(name));
  EXPECT_TRUE(node.removal_tainted);
  EXPECT_TRUE(hook_->machines().Find(name)->emptying.has_value());
  EXPECT_THAT(StepAndApply().emptied, IsEmpty()) << "pods may be bound there that nothing knows of";
  node.pods_settled = true;
  const StepOutput evicts = StepAndApply();
  ASSERT_THAT(evicts.emptied, SizeIs(1));
  EXPECT_EQ(evicts.emptied.front().name, name);
  EXPECT_THAT(evicts.emptied.front().why, HasSubstr("room on other nodes"));
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady) << "its pods run still";
  Vacate(name);
  StepAndApply();
  EXPECT_EQ(requests_.at(name).phase, Phase::kDraining) << "it does not wait once more";
  EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), SizeIs(1));
}

TEST_F(DisruptionTest, ItHasToBeSoAtEachLook) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  const absl::Duration half = options_.unneeded_after / 2;
  EXPECT_THAT(RunFor(half), IsEmpty());
  evacuated_.room = 0;
  RunFor(absl::Minutes(1));
  evacuated_.room = 1;
  EXPECT_THAT(RunFor(half + absl::Minutes(1)), IsEmpty());
  EXPECT_THAT(RunFor(half), SizeIs(1));
}

TEST_F(DisruptionTest, WhatMayNotGoAndWhatCostsMoreThanItSavesStays) {
  const std::vector<std::string> names = BuyMany(3);
  evacuated_.room = 10;
  evacuated_.occupants[names[0]].blocked_by = "pod team/a has no controller";
  evacuated_.occupants[names[1]].lost_work = options_.consolidation_horizon;
  nodes_.at(names[2]).needed_by_pods_alone = false;  // a pod is promised to it
  EXPECT_THAT(RunFor(absl::Hours(1)), IsEmpty());
  evacuated_.occupants[names[1]].lost_work = options_.consolidation_horizon - absl::Seconds(1);
  EXPECT_THAT(RunFor(absl::Minutes(10)), ElementsAre(names[1]));
}

TEST_F(DisruptionTest, NodesAreChosenForTheRoomThatTheyHaveTogether) {
  const std::vector<std::string> names = BuyMany(3);
  evacuated_.room = 2;
  evacuated_.occupants[names[0]].lost_work = absl::Minutes(3);
  EXPECT_THAT(RunFor(absl::Minutes(6)), ElementsAre(names[1], names[2])) << "the cheapest two";
  EXPECT_THAT(Tainted(), ElementsAre(names[1], names[2]));
}

TEST_F(DisruptionTest, NoneIsChosenBeforeTheLastOnesAreGone) {
  const std::vector<std::string> names = BuyMany(3);
  evacuated_.room = 1;
  ASSERT_THAT(RunFor(absl::Minutes(6)), SizeIs(1));
  const std::string first = *Tainted().begin();
  evacuated_.room = 5;
  EXPECT_THAT(RunFor(absl::Minutes(9) - absl::Seconds(30)), ElementsAre(first));
}

TEST_F(DisruptionTest, ItIsLookedAtAgainBeforeTheFirstEviction) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  nodes_.at(name).pods_settled = false;
  RunFor(absl::Minutes(6));
  ASSERT_THAT(Tainted(), ElementsAre(name));
  evacuated_.room = 0;
  nodes_.at(name).pods_settled = true;
  EXPECT_THAT(StepAndApply().emptied, IsEmpty());
  StepAndApply();
  EXPECT_THAT(Tainted(), IsEmpty());
  EXPECT_THAT(requests_.at(name).message, HasSubstr("no room elsewhere now"));
  // Not tried again for a while.
  evacuated_.room = 1;
  EXPECT_THAT(RunFor(absl::Minutes(30)), IsEmpty());
  EXPECT_THAT(RunFor(absl::Minutes(7)), SizeIs(1));
}

TEST_F(DisruptionTest, WhatIsWantedIsNotEmptied) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  nodes_.at(name).pods_settled = false;
  RunFor(absl::Minutes(6));
  ASSERT_THAT(Tainted(), ElementsAre(name));
  // Pods wait for nodes: before the first eviction this stops it.
  const Demand demand = {Item("team/huge", Spec(1000, 4, 64), 1)};
  Apply(Step(demand));
  EXPECT_FALSE(hook_->machines().Find(name)->emptying.has_value());
  Apply(Step(demand));
  EXPECT_THAT(Tainted(), IsEmpty());
  for (int i = 0; i < 100; ++i, now_ += absl::Seconds(10)) {
    EXPECT_THAT(Step(demand).emptied, IsEmpty());
  }
}

TEST_F(DisruptionTest, DemandThatCannotBeServedHoldsNothing) {
  BuyMany(1);
  evacuated_.room = 1;
  Demand demand = {Item("team/huge", Spec(1000, 4, 64), 1)};
  demand.front().charged = false;
  std::set<std::string> emptied;
  for (int i = 0; i < 60; ++i, now_ += absl::Seconds(10)) {
    for (const auto& node : StepAndApply(demand).emptied) emptied.insert(node.name);
  }
  EXPECT_THAT(emptied, SizeIs(1));
}

TEST_F(DisruptionTest, PodsThatCannotBeEvictedAreGivenUpAndTerminatingOnesAreNot) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  ASSERT_THAT(RunFor(absl::Minutes(6)), SizeIs(1));
  evacuated_.occupants[name].staying = 0;  // it terminates, and takes its time
  RunFor(absl::Hours(1));
  EXPECT_THAT(Tainted(), ElementsAre(name));
  evacuated_.occupants[name].staying = 1;
  StepTwice();
  EXPECT_THAT(Tainted(), IsEmpty());
  EXPECT_THAT(requests_.at(name).message, HasSubstr("could not be evicted"));
}

TEST_F(DisruptionTest, ARestartGivesUpWhatIsNotEmpty) {
  const std::string name = BuyMany(1).front();
  evacuated_.room = 1;
  ASSERT_THAT(RunFor(absl::Minutes(6)), SizeIs(1));
  Restart();
  StepTwice();
  EXPECT_THAT(Tainted(), IsEmpty());
}

TEST_F(DisruptionTest, AnInterruptedNodeIsEmptiedAtOnceWhateverThePolicySays) {
  options_.disruption.consolidation.reset();
  Restart();
  const std::vector<std::string> names = BuyMany(2);
  evacuated_.occupants[names[0]].blocked_by = "anything";
  nodes_.at(names[0]).interrupted = true;
  StepAndApply();
  EXPECT_THAT(Tainted(), ElementsAre(names[0]));
  const StepOutput out = StepAndApply({Item("team/b", Spec(1000, 4, 64), 1)});
  ASSERT_THAT(out.emptied, SizeIs(1));
  EXPECT_THAT(out.emptied.front().why, HasSubstr("takes the machine back"));
  nodes_.at(names[0]).interrupted = false;
  StepTwice();
  EXPECT_THAT(Tainted(), IsEmpty());
}

TEST_F(DisruptionTest, BudgetsHoldForEmptyNodesAndForOthers) {
  pools_.resize(1);
  pools_[0].meta.name = "p";
  pools_[0].disruption.budgets.emplace_back();
  pools_[0].disruption.budgets[0].nodes = 34;
  pools_[0].disruption.budgets[0].percent = true;  // 2 of 4, rounded up
  const std::vector<std::string> names = BuyMany(4);
  Vacate(names[0]);
  StepAndApply();
  now_ += options_.unneeded_after;
  nodes_.at(names[0]).pods_settled = false;
  StepAndApply();
  ASSERT_THAT(Tainted(), ElementsAre(names[0]));
  evacuated_.room = 10;
  EXPECT_THAT(RunFor(absl::Minutes(7)), SizeIs(1)) << "one more, with the empty one";
  EXPECT_THAT(Tainted(), SizeIs(2));
}

TEST_F(DisruptionTest, ABudgetHoldsInItsHours) {
  pools_.resize(1);
  pools_[0].meta.name = "p";
  model::DisruptionBudget budget;
  budget.nodes = 0;
  budget.schedule = *CronSchedule::Parse("0 8 * * *");
  budget.duration = absl::Hours(10);
  pools_[0].disruption.budgets.push_back(budget);
  now_ = absl::FromCivil(absl::CivilHour(2026, 11, 27, 17), absl::UTCTimeZone());
  const std::string name = BuyMany(1).front();
  Vacate(name);
  RunFor(absl::Minutes(59));
  EXPECT_THAT(Tainted(), IsEmpty());
  RunFor(absl::Minutes(2));
  EXPECT_NE(requests_.at(name).phase, Phase::kReady) << "after six in the evening";
}

TEST_F(DisruptionTest, ABudgetIsOfAReason) {
  pools_.resize(1);
  pools_[0].meta.name = "p";
  pools_[0].disruption.budgets.emplace_back().for_underutilized = true;  // 0 nodes
  const std::vector<std::string> names = BuyMany(2);
  evacuated_.room = 10;
  Vacate(names[1]);
  EXPECT_THAT(RunFor(absl::Minutes(10)), IsEmpty());
  EXPECT_EQ(requests_.at(names[0]).phase, Phase::kReady);
  EXPECT_EQ(requests_.at(names[1]).phase, Phase::kDraining);
}

TEST_F(DisruptionTest, ANodePoolSaysWhenAndNever) {
  pools_.resize(1);
  pools_[0].meta.name = "p";
  pools_[0].disruption.consolidate_after = absl::InfiniteDuration();
  const std::vector<std::string> names = BuyMany(2);
  evacuated_.room = 10;
  Vacate(names[1]);
  EXPECT_THAT(RunFor(absl::Hours(1)), IsEmpty());
  EXPECT_EQ(requests_.at(names[1]).phase, Phase::kReady) << "an empty one neither";
  pools_[0].disruption.consolidate_after = absl::Minutes(1);
  StepAndApply();
  StepAndApply();
  EXPECT_EQ(requests_.at(names[1]).phase, Phase::kDraining);
}

TEST_F(DisruptionTest, NothingIsRemovedWhileManyNodesAreNotReady) {
  const std::vector<std::string> names = BuyMany(8);
  for (size_t i = 0; i < 4; ++i) nodes_.at(names[i]).ready = false;
  Vacate(names[7]);
  evacuated_.room = 10;
  EXPECT_THAT(RunFor(absl::Hours(1)), IsEmpty());
  EXPECT_THAT(Tainted(), IsEmpty());
  EXPECT_EQ(requests_.at(names[7]).message, "not removed: 4 of 8 nodes are not ready");
  nodes_.at(names[0]).ready = true;
  StepTwice();
  EXPECT_EQ(requests_.at(names[7]).phase, Phase::kDraining);
}

TEST_F(DisruptionTest, RemovalsHaveAPace) {
  options_.removals_per_minute = 3;
  options_.disruption.consolidation.reset();
  Restart();
  const std::vector<std::string> names = BuyMany(8);
  for (const std::string& name : names) Vacate(name);
  StepAndApply();
  now_ += options_.unneeded_after;
  StepTwice();
  const auto drained = [&] {
    int64_t count = 0;
    for (const auto& [name, request] : requests_) count += request.phase == Phase::kDraining;
    return count;
  };
  EXPECT_EQ(drained(), 3);
  for (int i = 0; i < 20; ++i) {
    now_ += absl::Seconds(1);
    StepAndApply();
  }
  EXPECT_EQ(drained(), 4);
  for (int i = 0; i < 81; ++i) {
    now_ += absl::Seconds(1);
    StepAndApply();
  }
  EXPECT_EQ(drained(), 8);
}

TEST_F(DisruptionTest, AMinimumLifetimeHoldsAnEmptyNode) {
  options_.minimum_lifetime = absl::Hours(1);
  Restart();
  const std::string name = BuyMany(1).front();
  const absl::Time launched = *requests_.at(name).launched_at;
  Vacate(name);
  RunFor(launched + absl::Hours(1) - now_);
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
  StepTwice();
  EXPECT_EQ(requests_.at(name).phase, Phase::kDraining);
}

TEST_F(DisruptionTest, WhatIsPaidForIsUsed) {
  options_.billing_period = absl::Hours(1);
  Restart();
  const std::string name = BuyMany(1).front();
  const absl::Time launched = *requests_.at(name).launched_at;
  now_ = launched + absl::Minutes(70);
  Vacate(name);
  StepAndApply();
  // Due at 75 minutes; the second hour is paid for.
  RunFor(launched + absl::Minutes(118) - now_);
  EXPECT_EQ(requests_.at(name).phase, Phase::kReady);
  EXPECT_THAT(Tainted(), IsEmpty());
  now_ = launched + absl::Minutes(118);
  StepTwice();
  EXPECT_EQ(requests_.at(name).phase, Phase::kDraining);
}

}  // namespace
}  // namespace fairlead::hook
