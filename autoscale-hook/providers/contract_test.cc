// The suite of contract_testing.h. The tests of each provider instantiate it.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/testing/random.h"

namespace fairlead::hook {
namespace {

using StateList = std::vector<MachineState>;
using Ids = std::set<std::string>;
constexpr auto kRunning = MachineState::kRunning;
constexpr auto kGone = MachineState::kGone;

bool Has(const StateList& states, MachineState state) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

}  // namespace

// ---- orders

TEST_P(ProviderContract, EachOrderOfASetStartsOneMachine) {
  std::vector<Call*> calls = OrderSet({{"fl-1", "u1"}, {"fl-2", "u2"}, {"fl-3", "u3"}});
  Pass(kRuns);
  for (const Call* call : calls) {
    EXPECT_TRUE(call->ok()) << call->answer.status;
    EXPECT_EQ(Machines(call->request), Ids{ToldId(call->request)});
    EXPECT_EQ(Has(States(call->request), kRunning), world_->traits().watches);
    EXPECT_FALSE(Has(States(call->request), kGone));
  }
}

TEST_P(ProviderContract, AnOrderIsIdempotent) {
  OrderSet({{"fl-1", "u1"}, {"fl-1", "u1"}});
  for (const int seconds : {0, 1, 10, 300, 1}) {
    Pass(absl::Seconds(seconds));
    Order({"fl-1", "u1"});
  }
  Pass(kRuns);
  for (const Call& call : calls_) EXPECT_TRUE(call.ok()) << call.answer.status;
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
}

TEST_P(ProviderContract, AnOrderIsIdempotentAcrossARestart) {
  for (const int seconds : {0, 1, 5, 30, 300}) {
    const Wanted wanted = {absl::StrCat("fl-", seconds), absl::StrCat("u-", seconds)};
    Order(wanted);
    Pass(absl::Seconds(seconds));
    Restart();
    OrderUntilOk(wanted);
    Pass(kRuns);
    EXPECT_EQ(Machines(wanted.name).size(), 1u) << "restart after " << seconds << " s";
  }
}

TEST_P(ProviderContract, AnOrderIsIdempotentAfterALostReply) {
  for (const bool restart : {false, true}) {
    const Wanted wanted = {absl::StrCat("fl-", restart), absl::StrCat("u-", restart)};
    world_->calls.FailWrites(Fault::kLostReply);
    Order(wanted);
    Pass(absl::Seconds(15));
    if (restart) Restart();
    OrderUntilOk(wanted);
    Pass(kRuns);
    EXPECT_EQ(Machines(wanted.name), Ids{ToldId(wanted.name)});
    EXPECT_FALSE(Has(States(wanted.name), kGone));
  }
}

TEST_P(ProviderContract, AnOrderIsIdempotentWhileAnotherReplyIsAwaited) {
  world_->calls.Hold();
  Order({"fl-1", "u1"});
  Pass(absl::Minutes(1));
  Order({"fl-1", "u1"});
  Pass(absl::Seconds(15));
  world_->calls.Release();
  Pass(kRuns);
  for (const Call& call : calls_) EXPECT_TRUE(call.ok()) << call.answer.status;
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
}

TEST_P(ProviderContract, ABackEndThatIsDownIsNoFailureOfTheMachine) {
  world_->calls.FailAll(Fault::kDown);
  const Call* call = Order({"fl-1", "u1"});
  Pass(absl::Minutes(5));
  EXPECT_TRUE(Failure(*call).ok() || IsUnknownOutcome(Failure(*call))) << Failure(*call);
  world_->calls.FailAll(Fault::kNone);
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
  EXPECT_FALSE(Has(States("fl-1"), kGone));
}

TEST_P(ProviderContract, ARefusedMemberOfASetDoesNotConcernTheOthers) {
  std::vector<Call*> calls =
      OrderSet({{"fl-1", "u1"}, {"fl-2", "u2", kNoneType}, {"fl-3", "u3"}, {"fl-4", "u4"}});
  Pass(kRuns);
  for (const Call* call : calls) {
    const bool refused = call->request == "fl-2";
    EXPECT_EQ(ClassifyFailure(Failure(*call)),
              refused ? std::optional(FailureClass::kStockout) : std::nullopt);
    EXPECT_EQ(call->ok() && Machines(call->request).size() == 1, !refused);
  }
  EXPECT_EQ(Machines("fl-2"), Ids{});
}

// The set cannot be had, whatever the provider does with the others: none, or those that there are.
TEST_P(ProviderContract, NothingStaysOfAWholeSetThatIsGivenBack) {
  const std::vector<Wanted> set = {
      {"fl-1", "u1"}, {"fl-2", "u2", kNoneType}, {"fl-3", "u3", kLateType}, {"fl-4", "u4"}};
  const std::vector<Call*> calls = OrderSet(set, /*atomic=*/true);
  Pass(absl::Minutes(1));
  EXPECT_EQ(ClassifyFailure(Failure(*calls[1])), FailureClass::kStockout) << Failure(*calls[1]);
  for (const Wanted& wanted : set) GiveBack(wanted.name);
  Pass(absl::Minutes(30));
  for (const Wanted& wanted : set) EXPECT_EQ(Machines(wanted.name), Ids{}) << wanted.name;
}

TEST_P(ProviderContract, AWholeSetIsOrderedOnce) {
  const std::vector<Wanted> set = {{"fl-1", "u1"}, {"fl-2", "u2", kLateType}, {"fl-3", "u3"}};
  world_->calls.FailWrites(Fault::kLostReply);
  OrderSet(set, /*atomic=*/true);
  Pass(absl::Seconds(15));
  OrderSet(set, /*atomic=*/true);
  Restart();
  OrderWholeUntilOk(set);
  Order(set[2]);  // a repeated order comes without the others
  Pass(absl::Minutes(5));
  for (const Wanted& wanted : set) {
    EXPECT_EQ(Machines(wanted.name), Ids{ToldId(wanted.name)});
    EXPECT_FALSE(Has(States(wanted.name), kGone));
  }
}

TEST_P(ProviderContract, AnUnauthorisedOrderFailsAsSuch) {
  world_->calls.FailAll(Fault::kForbidden);
  const Call* call = Order({"fl-1", "u1"});
  Pass(absl::Minutes(1));
  EXPECT_EQ(ClassifyFailure(Failure(*call)), FailureClass::kAuth) << Failure(*call);
  world_->calls.FailAll(Fault::kNone);
  Pass(absl::Minutes(20));
  EXPECT_EQ(Machines("fl-1"), Ids{}) << "it was refused for certain";
}

TEST_P(ProviderContract, ThrottlingLeadsToPausesThatGrow) {
  world_->calls.FailAll(Fault::kThrottled);
  const Call* call = Order({"fl-1", "u1"});
  const int64_t before = world_->calls.count();
  Pass(absl::Minutes(1));
  const int64_t first = world_->calls.count() - before;
  EXPECT_LE(first, 15);
  EXPECT_GT(first, 0);
  Pass(absl::Minutes(4));
  const int64_t middle = world_->calls.count();
  Pass(absl::Minutes(5));
  EXPECT_LE(world_->calls.count() - middle, 12) << "calls in 5 minutes";
  EXPECT_TRUE(Failure(*call).ok() || IsUnknownOutcome(Failure(*call))) << Failure(*call);
  world_->calls.FailAll(Fault::kNone);
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
  EXPECT_FALSE(Has(States("fl-1"), kGone));
}

TEST_P(ProviderContract, ALateMachineIsNotGone) {
  OrderUntilOk({"fl-1", "u1", kLateType});
  const int64_t before = world_->calls.count();
  Pass(absl::Minutes(3));
  EXPECT_LE(world_->calls.count() - before, 3 * 60 + 10) << "a call per second at most";
  EXPECT_FALSE(Has(States("fl-1"), kRunning));
  OrderUntilOk({"fl-1", "u1", kLateType});
  Pass(absl::Minutes(3));
  EXPECT_EQ(Has(States("fl-1"), kRunning), world_->traits().watches);
  EXPECT_FALSE(Has(States("fl-1"), kGone));
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
}

TEST_P(ProviderContract, AMachineThatNeverRunsIsNotReportedToRun) {
  OrderUntilOk({"fl-1", "u1", kNeverType});
  Pass(absl::Minutes(30));
  EXPECT_FALSE(Has(States("fl-1"), kRunning));
  EndUntilOk("fl-1");
}

TEST_P(ProviderContract, AnIdleProviderIsQuiet) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  const int64_t before = world_->calls.count();
  const size_t reports = reports_.size();
  Pass(absl::Minutes(10));
  EXPECT_LE(world_->calls.count() - before, 60) << "calls in 10 minutes";
  EXPECT_EQ(reports_.size(), reports) << "reports are about changes";
}

// ---- ends

TEST_P(ProviderContract, EndsTheMachineWithThatId) {
  OrderUntilOk({"fl-1", "u1"});
  OrderUntilOk({"fl-2", "u2"});
  Pass(kRuns);
  EndUntilOk("fl-1", ToldId("fl-1"));
  EXPECT_EQ(Machines("fl-2").size(), 1u);
  Pass(absl::Minutes(20));
  EndUntilOk("fl-1", ToldId("fl-1"));  // what is gone is gone
  for (const MachineReport& report : reports_) EXPECT_TRUE(report.why.ok()) << report.why;
}

TEST_P(ProviderContract, EndsWhateverTheRequestHas) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  if (world_->traits().labels_nodes) {
    EndUntilOk("fl-1");
    EXPECT_EQ(Machines("fl-1"), Ids{});
  } else {
    const Call* call = End("fl-1");
    Pass(absl::Minutes(1));
    EXPECT_TRUE(absl::IsFailedPrecondition(call->answer.status)) << call->answer.status;
    EXPECT_EQ(Machines("fl-1"), Ids{call->answer.machine_id});
  }
}

TEST_P(ProviderContract, TheEndOfWhatNeverWasIsOk) {
  EndUntilOk("fl-1");
  EndUntilOk("fl-2", "id://of-nothing");
  Pass(absl::Minutes(5));
  EXPECT_TRUE(reports_.empty());
}

TEST_P(ProviderContract, TheEndOfAnotherIdLeavesTheMachine) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  EndUntilOk("fl-1", "id://of-another");
  Pass(absl::Minutes(5));
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
}

TEST_P(ProviderContract, AMachineThatIsEndedWhileItStartsNeverAppears) {
  for (const int ms : {0, 10, 30, 50, 500, 2000, 10'020, 10'030, 30'000}) {
    const Wanted wanted = {absl::StrCat("fl-", ms), absl::StrCat("u-", ms)};
    Order(wanted);
    world_->time.Advance(absl::Milliseconds(ms));
    EndUntilOk(wanted.name);
  }
  Pass(absl::Minutes(30));
}

TEST_P(ProviderContract, AnEndWaitsForTheReplyToTheOrder) {
  Pass(absl::Minutes(3));
  world_->calls.HoldWrites();
  Order({"fl-1", "u1"});
  Pass(absl::Seconds(15));
  const Call* end = End("fl-1");
  Pass(absl::Seconds(15));
  EXPECT_FALSE(end->ok() && world_->calls.held() > 0) << "the order may be carried out";
  world_->calls.Release();
  EndUntilOk("fl-1");
  Pass(absl::Minutes(30));
}

TEST_P(ProviderContract, AReadFromBeforeAnOrderSaysNothingAboutIt) {
  Pass(absl::Minutes(3));
  for (const std::string name : {"fl-1", "fl-2"}) {
    world_->calls.HoldReadReplies();
    Pass(absl::Minutes(1));
    Order({name, "u1"});
    Pass(absl::Minutes(1));
    if (name == "fl-2") End(name);
    world_->calls.Release();
    Pass(absl::Seconds(5));  // End and OnMachine check what is said
    EXPECT_FALSE(name == "fl-1" && Has(States(name), kGone));
  }
  EXPECT_EQ(Machines("fl-1").size(), 1u);
  EndUntilOk("fl-2");
  Pass(absl::Minutes(5));
}

TEST_P(ProviderContract, AnEndIsRepeatedAfterLostReplies) {
  OrderUntilOk({"fl-1", "u1"});
  OrderUntilOk({"fl-2", "u2"});
  Pass(kRuns);
  world_->calls.FailWrites(Fault::kLostReply);
  EndUntilOk("fl-1", ToldId("fl-1"));
  world_->calls.FailWrites(Fault::kLostReply);
  End("fl-2", ToldId("fl-2"));
  Pass(absl::Seconds(1));
  Restart();
  EndUntilOk("fl-2", ToldId("fl-2"));
}

TEST_P(ProviderContract, AnEndThatIsAskedForTwiceIsAnsweredTwice) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  const std::string id = ToldId("fl-1");
  for (int i = 0; i < 3; ++i) End("fl-1", id);
  Pass(absl::Minutes(1));
  EndUntilOk("fl-1", id);
}

TEST_P(ProviderContract, AnEndThatIsThrottledDoesNotLoop) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  world_->calls.FailAll(Fault::kThrottled);
  const int64_t before = world_->calls.count();
  End("fl-1");
  Pass(absl::Minutes(5));
  EXPECT_LE(world_->calls.count() - before, 25) << "calls in 5 minutes";
  EXPECT_EQ(Machines("fl-1").size(), 1u);
  world_->calls.FailAll(Fault::kNone);
  EndUntilOk("fl-1");
}

TEST_P(ProviderContract, ANameMayBeUsedAgain) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  EndUntilOk("fl-1");
  Pass(absl::Minutes(1));
  reports_.clear();
  OrderUntilOk({"fl-1", "u2"});  // OnMachine checks the uid
  Pass(kRuns);
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
  EXPECT_FALSE(Has(States("fl-1"), kGone));
  EndUntilOk("fl-1");
}

// ---- reports

TEST_P(ProviderContract, ForeignersAreNeitherReportedNorEnded) {
  world_->AddForeigner("theirs");
  Restart();
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  provider_->ReportAll();
  EndUntilOk("fl-1");
  Pass(absl::Minutes(5));
  EXPECT_TRUE(world_->HasForeigner("theirs"));
}

TEST_P(ProviderContract, TheLossOfAMachineThatRunsIsReported) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  const std::string id = ToldId("fl-1");
  world_->Vanish("fl-1");
  Pass(kRuns);
  EXPECT_EQ(Has(States("fl-1"), kGone), world_->traits().watches);
  if (world_->traits().watches) {
    EXPECT_EQ(reports_.back().machine_id, id);
  }
  EndUntilOk("fl-1", id);
}

TEST_P(ProviderContract, TheLossOfAMachineThatStartsIsReportedWithAReason) {
  OrderUntilOk({"fl-1", "u1", kLateType});
  Pass(absl::Minutes(1));
  world_->Vanish("fl-1");
  Pass(kRuns);
  const bool sees = world_->traits().watches && world_->traits().sees_starts;
  EXPECT_EQ(Has(States("fl-1"), kGone), sees);
  if (sees) {
    EXPECT_NE(ClassifyFailure(reports_.back().why), std::nullopt);
  }
  EndUntilOk("fl-1");
}

TEST_P(ProviderContract, AMachineThatIsReplacedIsToldByItsNewId) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  const std::string old_id = ToldId("fl-1");
  world_->Replace("fl-1");
  Pass(kRuns);
  EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
  if (ToldId("fl-1") != old_id) {
    EXPECT_TRUE(Has(States("fl-1"), kGone));
    EndUntilOk("fl-1", old_id);
    EXPECT_EQ(Machines("fl-1"), Ids{ToldId("fl-1")});
  }
  EndUntilOk("fl-1", ToldId("fl-1"));
  EXPECT_EQ(Machines("fl-1"), Ids{});
}

TEST_P(ProviderContract, ReportsWhatIsThereAfterARestart) {
  OrderUntilOk({"fl-1", "u1"});
  OrderUntilOk({"fl-2", "u2", kLateType});
  Pass(kRuns);
  const std::string id = ToldId("fl-1");
  reports_.clear();
  Restart();
  Pass(absl::Seconds(30));
  if (!world_->traits().watches) {
    EXPECT_TRUE(reports_.empty());
  } else {
    EXPECT_EQ(States("fl-1"), StateList{kRunning});
    EXPECT_EQ(ToldId("fl-1"), id);
    EXPECT_EQ(States("fl-2"),
              world_->traits().sees_starts ? StateList{MachineState::kStarting} : StateList{});
  }
  reports_.clear();
  provider_->ReportAll();
  Pass(absl::Seconds(30));
  EXPECT_EQ(States("fl-1"), world_->traits().watches ? StateList{kRunning} : StateList{});
}

TEST_P(ProviderContract, ReportsAllAgain) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  reports_.clear();
  provider_->ReportAll();
  Pass(absl::Seconds(30));
  EXPECT_EQ(States("fl-1"),
            StateList{world_->traits().watches ? kRunning : MachineState::kStarting});
  EXPECT_EQ(reports_.front().machine_id, ToldId("fl-1"));
}

TEST_P(ProviderContract, DestructionWithCallsUnderWayIsSafe) {
  OrderUntilOk({"fl-1", "u1"});
  Pass(kRuns);
  world_->calls.Hold();
  OrderSet({{"fl-2", "u2"}, {"fl-3", "u3"}});
  End("fl-1");
  Pass(absl::Seconds(15));
  Destroy();  // from now on an answer or a report is a failure
  world_->calls.Release();
  Pass(absl::Minutes(1));
  Restart();
  OrderUntilOk({"fl-2", "u2"});
  EndUntilOk("fl-1");
  EndUntilOk("fl-3");
  Pass(kRuns);
  EXPECT_EQ(Machines("fl-2").size(), 1u);
}

// ---- all of it

// Orders and ends at random, with faults and restarts in between. The fixture checks what always
// holds; in the end every machine can be ended. FAIRLEAD_PROVIDER_SEEDS says how many worlds.
TEST_P(ProviderContract, HoldsInRandomWorlds) {
  const uint64_t seeds = fairlead::testing::FromEnvironment("FAIRLEAD_PROVIDER_SEEDS", 4);
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    fairlead::testing::Random random(seed);
    SCOPED_TRACE(random.Describe());
    Destroy();
    calls_.clear();
    ended_.clear();
    world_ = GetParam()();
    Restart();
    RunAtRandom(random, 80);
  }
}

}  // namespace fairlead::hook
