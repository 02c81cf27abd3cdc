// Machines that are ordered at once: when, and what becomes of a set of which a part fails.
#include "autoscale-hook/machines/launch_sets.h"

#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/provisioning/plan_sets.h"
#include "base/write_attempts.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::HookTest;
using testing::Item;
using testing::kStart;
using testing::Spec;

class LaunchSetsTest : public HookTest {
 protected:
  // One pod per machine of both types.
  static Demand Gang(int64_t pods) { return {Item("team/gang", Spec(1000, 4, 1), pods, true)}; }
  static Demand LonePods(int64_t pods) { return {Item("team/pod", Spec(1000, 4, 1), pods)}; }

  // Writes the requests; those in `hidden_` are there, and the watch does not show them.
  void Write(const Demand& demand, size_t machines, size_t hidden = 0) {
    StepAndApply(demand);
    ASSERT_EQ(requests_.size(), machines);
    for (size_t i = 0; i < hidden; ++i) {
      hidden_.insert(requests_.extract(requests_.begin()));
    }
  }
  void ShowHidden() { requests_.merge(hidden_); }
  void BuyGang(size_t machines) {
    Write(Gang(static_cast<int64_t>(machines)), machines);
    ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), machines);
  }
  void AnswerLaunch(const std::string& name, const absl::Status& status) {
    hook_->OnProviderResult({name, requests_.at(name).meta.uid, "", true}, status, now_);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, request] : requests_) names.push_back(name);
    return names;
  }
  std::string TheFirst() const { return requests_.begin()->first; }
  int64_t CountIn(Phase phase) const {
    return std::count_if(requests_.begin(), requests_.end(),
                         [&](const auto& entry) { return entry.second.phase == phase; });
  }
  // Those that are told to go are gone. Lists of nodes have pauses.
  void EndAll() {
    for (int i = 0; i < 4 && !requests_.empty(); ++i) {
      now_ += absl::Seconds(6);
      StepAndApply();
      Answer(false, absl::OkStatus());
    }
    StepAndApply();
  }

  std::map<std::string, model::NodeRequest> hidden_;
};

// ---- the order

TEST_F(LaunchSetsTest, AGangIsOrderedWhenAllOfItsRequestsAreSeen) {
  Write(Gang(3), 3, 1);
  for (int i = 0; i < 5; ++i) {
    now_ += absl::Seconds(10);
    EXPECT_TRUE(StepAndApply().actions.empty()) << "neither an order nor a write";
  }
  ShowHidden();
  const auto orders = All<model::LaunchNode>(StepAndApply());
  ASSERT_EQ(orders.size(), 3u);
  for (const model::LaunchNode& order : orders) {
    const auto set = LaunchSetOf(order.request);
    ASSERT_TRUE(set.has_value());
    EXPECT_EQ(set->id, LaunchSetOf(orders[0].request)->id);
    EXPECT_EQ(set->size, 3);
    EXPECT_TRUE(set->atomic);
  }
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(LaunchSetsTest, LonePodsAreOrderedTogetherButNotHeldForLong) {
  Write(LonePods(3), 3, 1);
  EXPECT_FALSE(LaunchSetOf(The())->atomic);
  const StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::LaunchNode>(out).empty());
  EXPECT_LE(out.wake_at, now_ + kSetPatience);
  now_ += kSetPatience;
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 2u);
  ShowHidden();
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
}

TEST_F(LaunchSetsTest, MembersThatWereSeenLaterAreNotHeldLonger) {
  Write(LonePods(3), 3, 2);
  StepAndApply();
  now_ += kSetPatience - absl::Seconds(1);
  requests_.insert(hidden_.extract(hidden_.begin()));
  EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
  now_ += absl::Seconds(1);
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 2u);
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(LaunchSetsTest, OneMachineIsOfNoSet) {
  Write(Gang(1), 1);
  EXPECT_FALSE(LaunchSetOf(The()).has_value());
}

TEST_F(LaunchSetsTest, GangsAndLonePodsAreOfSetsOfTheirOwn) {
  Demand demand = {Item("team/a", Spec(1000, 4, 1), 2, true),
                   Item("team/b", Spec(1000, 4, 1), 3, true), Item("team/c", Spec(1000, 4, 1), 2)};
  Write(demand, 7);
  std::map<std::string, std::vector<LaunchSet>> by_workload;
  for (const auto& [name, request] : requests_) {
    const auto set = LaunchSetOf(request);
    ASSERT_TRUE(set.has_value());
    by_workload[request.reason_workloads.at(0)].push_back(*set);
  }
  std::set<std::string> ids;
  for (const auto& [workload, sets] : by_workload) {
    ids.insert(sets[0].id);
    for (const LaunchSet& set : sets) {
      EXPECT_EQ(set.id, sets[0].id) << workload;
      EXPECT_EQ(set.size, static_cast<int64_t>(sets.size())) << workload;
      EXPECT_EQ(set.atomic, workload != "team/c");
    }
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(LaunchSetsTest, GangsThatShareAMachineAreOneSet) {
  Plan plan;
  plan.nodes.resize(5);
  plan.nodes[0].pods_of_item = {{0, 1}};
  plan.nodes[1].pods_of_item = {{0, 1}, {1, 1}};
  plan.nodes[2].pods_of_item = {{1, 1}, {3, 1}};
  plan.nodes[3].pods_of_item = {{2, 1}};
  plan.nodes[4].pods_of_item = {{3, 1}};  // lone pods
  std::vector<model::NodeRequest> requests(5);
  for (size_t i = 0; i < 5; ++i) requests[i].meta.name = absl::StrCat("fl-", i);
  MarkPlanSets(plan, [](size_t outcome) { return outcome != 3; }, requests);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(LaunchSetOf(requests[i]).has_value()) << i;
    EXPECT_EQ(LaunchSetOf(requests[i])->id, LaunchSetOf(requests[0])->id);
    EXPECT_EQ(LaunchSetOf(requests[i])->size, 3);
    EXPECT_TRUE(LaunchSetOf(requests[i])->atomic);
  }
  EXPECT_FALSE(LaunchSetOf(requests[3]).has_value());
  EXPECT_FALSE(LaunchSetOf(requests[4]).has_value());
}

TEST_F(LaunchSetsTest, WhatIsWrittenOddlyIsNoSet) {
  model::NodeRequest request;
  for (const char* size : {"", "x", "1", "-3", "99999999999999999999"}) {
    request.meta.labels.Set(kLaunchSetLabel, "set-1");
    request.meta.annotations.Set(kLaunchSetSizeAnnotation, size);
    EXPECT_FALSE(LaunchSetOf(request).has_value()) << size;
  }
}

// ---- members that do not come

TEST_F(LaunchSetsTest, ARefusedWriteGivesTheSetBackAndAnotherTypeIsPlanned) {
  Write(Gang(3), 3, 1);
  const std::string lost = hidden_.begin()->first;
  hidden_.clear();
  StepAndApply();
  hook_->OnCreateResult(lost, absl::PermissionDeniedError("a webhook says no"), now_);
  const StepOutput out = StepAndApply();
  EXPECT_EQ(out.withdrawn.size(), 3u);
  EXPECT_EQ(CountIn(Phase::kDraining), 2);
  EXPECT_NE(The().message.find("given back"), std::string::npos) << The().message;
  EXPECT_TRUE(All<model::LaunchNode>(out).empty());
  Write(Gang(3), 5);
  int64_t others = 0;
  for (const auto& [name, request] : requests_) others += request.instance_type == "h.1" ? 1 : 0;
  EXPECT_EQ(others, 3) << "the next plan has the alternative";
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 3u);
}

TEST_F(LaunchSetsTest, ADeletedMemberGivesTheSetBack) {
  Write(Gang(3), 3, 1);
  StepAndApply();
  requests_.erase(requests_.begin());
  const StepOutput out = StepAndApply();
  EXPECT_EQ(CountIn(Phase::kDraining), 1);
  ShowHidden();
  StepAndApply();
  EXPECT_EQ(CountIn(Phase::kDraining), 2) << "it came too late";
  EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
  EndAll();
  EXPECT_TRUE(requests_.empty());
}

TEST_F(LaunchSetsTest, LonePodsGoOnWithoutARefusedMember) {
  Write(LonePods(3), 3, 1);
  const std::string lost = hidden_.begin()->first;
  hook_->OnCreateResult(lost, absl::PermissionDeniedError("a webhook says no"), now_);
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 2u);
}

TEST_F(LaunchSetsTest, AMemberThatIsNeverSeenIsNoFailureOfTheProvider) {
  Write(Gang(2), 2, 1);
  const std::string seen = TheName();
  StepAndApply();
  now_ += options_.launch_timeout;
  const StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::LaunchNode>(out).empty());
  EXPECT_EQ(requests_.at(seen).phase, Phase::kDraining);
  EXPECT_TRUE(requests_.at(seen).failure.empty());
}

// ---- machines that cannot be had

TEST_F(LaunchSetsTest, AStockoutOfOneGivesBackTheOthers) {
  BuyGang(3);
  const std::vector<std::string> names = Names();
  AnswerLaunch(names[0], absl::OkStatus());
  AnswerLaunch(names[1], absl::ResourceExhaustedError("sold out"));
  const StepOutput out = StepAndApply();
  EXPECT_EQ(out.withdrawn.size(), 3u);
  EXPECT_EQ(requests_.at(names[1]).phase, Phase::kFailed);
  for (const std::string& name : {names[0], names[2]}) {
    EXPECT_EQ(requests_.at(name).phase, Phase::kDraining);
    EXPECT_TRUE(requests_.at(name).failure.empty()) << "that it is given back is no failure";
    EXPECT_NE(requests_.at(name).message.find("Stockout: sold out"), std::string::npos);
  }
  // The third is ended only when its order was answered.
  EndAll();
  EXPECT_EQ(Names(), std::vector<std::string>{names[2]});
  AnswerLaunch(names[2], absl::OkStatus());
  EndAll();
  EXPECT_TRUE(requests_.empty()) << "nothing of it stays bought";
  Write(Gang(3), 3);
  EXPECT_EQ(The().instance_type, "h.1");
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 3u);
}

TEST_F(LaunchSetsTest, WhatIsGivenBackDoesNotBackOff) {
  catalog_ = Catalog::FromTypes({testing::Type("g.1", 4, 16, 1, testing::kDollar),
                                 testing::Type("c.1", 8, 64, 0, testing::kDollar)});
  Restart();
  Demand demand = Gang(1);
  verdict::DemandClass driver;
  driver.spec = Spec(7000, 60, 0);
  driver.count = 1;
  demand[0].classes.push_back(driver);
  Write(demand, 2);
  ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 2u);
  for (const auto& [name, request] : requests_) {
    if (request.instance_type == "g.1") AnswerLaunch(name, absl::ResourceExhaustedError("no"));
  }
  StepAndApply();
  EXPECT_EQ(CountIn(Phase::kDraining), 1);
  Write({Item("team/other", Spec(7000, 60, 0), 1)}, 3);  // the type without a stock-out
}

TEST_F(LaunchSetsTest, LonePodsKeepWhatCanBeHad) {
  Write(LonePods(3), 3);
  ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 3u);
  AnswerLaunch(Names()[0], absl::ResourceExhaustedError("sold out"));
  StepAndApply();
  EXPECT_EQ(CountIn(Phase::kFailed), 1);
  EXPECT_EQ(CountIn(Phase::kPending), 2);
}

TEST_F(LaunchSetsTest, ALateStockoutGivesBackWhatHasNotRegistered) {
  BuyGang(3);
  const std::vector<std::string> names = Names();
  for (const std::string& name : names) AnswerLaunch(name, absl::OkStatus());
  nodes_.at(names[0]).registered = true;
  nodes_.at(names[0]).uid = "node-uid";
  StepAndApply();
  ASSERT_EQ(CountIn(Phase::kLaunched), 2);
  hook_->OnMachineReport({"kwok", names[1], requests_.at(names[1]).meta.uid, "",
                          MachineState::kGone, absl::ResourceExhaustedError("sold out")},
                         now_);
  StepAndApply();
  EXPECT_EQ(requests_.at(names[0]).phase, Phase::kRegistered) << "the next plan may use it";
  EXPECT_EQ(requests_.at(names[1]).phase, Phase::kFailed);
  EXPECT_EQ(requests_.at(names[2]).phase, Phase::kDraining);
}

TEST_F(LaunchSetsTest, AMachineThatIsNotNeededAnyMoreIsNoFailureOfItsSet) {
  BuyGang(3);
  for (const std::string& name : Names()) AnswerLaunch(name, absl::OkStatus());
  StepAndApply();
  nodes_.at(TheFirst()).needed = false;
  StepAndApply();
  now_ += options_.cancel_after;
  StepAndApply();
  EXPECT_EQ(CountIn(Phase::kDraining), 1);
  EXPECT_EQ(CountIn(Phase::kLaunched), 2);
}

TEST_F(LaunchSetsTest, CapsHoldWhileASetIsGivenBack) {
  options_.cluster_gpu_limit = 3;
  Restart();
  BuyGang(3);
  const std::vector<std::string> names = Names();
  AnswerLaunch(names[0], absl::OkStatus());
  AnswerLaunch(names[1], absl::OkStatus());
  AnswerLaunch(names[2], absl::ResourceExhaustedError("sold out"));
  StepAndApply();
  StepAndApply(Gang(3));
  EXPECT_EQ(requests_.size(), 3u) << "two machines still cost money";
  EndAll();
  ASSERT_TRUE(requests_.empty());
  Write(Gang(3), 3);
}

// ---- another process

TEST_F(LaunchSetsTest, AnotherProcessFindsTheSetAndOrdersItWhole) {
  Write(Gang(3), 3);
  Restart();
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 3u);
}

TEST_F(LaunchSetsTest, AnotherProcessWaitsForWritesOfTheFormerOne) {
  for (const bool comes : {true, false}) {
    requests_.clear();
    nodes_.clear();
    Restart();
    Write(Gang(3), 3, 1);
    Restart();
    EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
    now_ += kDoubtLasts - absl::Seconds(1);
    EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
    if (comes) {
      ShowHidden();
      EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 3u);
      continue;
    }
    hidden_.clear();
    now_ += absl::Seconds(1);
    EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
    EXPECT_EQ(CountIn(Phase::kDraining), 2);
    EndAll();
    EXPECT_TRUE(requests_.empty());
  }
}

TEST_F(LaunchSetsTest, ASetThatWasOrderedHoldsNothing) {
  BuyGang(3);
  AnswerLaunch(TheFirst(), absl::OkStatus());
  StepAndApply();
  ASSERT_EQ(CountIn(Phase::kLaunched), 1);
  requests_.erase(std::prev(requests_.end()));  // lost with the former process
  Restart();
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 2u);
}

TEST_F(LaunchSetsTest, AnotherProcessGivesBackWhatTheFormerOneDidNot) {
  BuyGang(3);
  const std::vector<std::string> names = Names();
  AnswerLaunch(names[0], absl::OkStatus());
  StepAndApply();
  requests_.at(names[1]).phase = Phase::kFailed;
  requests_.at(names[1]).failure = "Stockout";
  requests_.at(names[1]).failed_at = now_;
  Restart();
  StepAndApply();
  EXPECT_EQ(requests_.at(names[0]).phase, Phase::kDraining);
  EXPECT_EQ(requests_.at(names[2]).phase, Phase::kDraining);
}

TEST_F(LaunchSetsTest, ARequestThatIsWrittenAgainIsOfNoSet) {
  BuyGang(2);
  for (const std::string& name : Names()) {
    AnswerLaunch(name, absl::OkStatus());
    nodes_.at(name).registered = nodes_.at(name).ready = true;
    nodes_.at(name).uid = "uid-" + name;
  }
  StepAndApply();
  requests_.erase(requests_.begin());  // by force
  StepAndApply();
  now_ += absl::Minutes(1);
  const auto again = All<model::CreateNodeRequest>(StepAndApply());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_FALSE(LaunchSetOf(again[0].request).has_value());
}

}  // namespace
}  // namespace fairlead::hook
