// Orders: which machine is whose, and what increases the groups, with answers that come late,
// never, twice, or as errors.
#include "autoscale-hook/providers/groups/groups_fixture_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GroupsOrders : public GroupsFixture {
 protected:
  void SetUp() override {
    cloud_.AddGroup("g");
    Start();
    Pass(absl::Seconds(1));
  }
  void Restart() {
    provider_.reset();
    reports_.clear();
    Start();
  }
};

// ---- increases

TEST_F(GroupsOrders, OrdersOfOneGroupMakeOneIncrease) {
  cloud_.AddGroup("h");
  const auto asked = LaunchSet({{"fl-b"}, {"fl-a"}, {"fl-c", "h"}});
  Launch({"fl-d"});  // of the same step
  Pass(absl::Seconds(1));
  for (const Asked* order : asked) EXPECT_TRUE(order->answer.status.ok()) << order->answer.status;
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 3", "increase h 1"));
  Pass(absl::Seconds(20));
  // New ids in their order, to the orders in theirs.
  EXPECT_EQ(IdOf("fl-b"), "cloud:///i-0001");
  EXPECT_EQ(IdOf("fl-a"), "cloud:///i-0002");
  EXPECT_EQ(IdOf("fl-d"), "cloud:///i-0003");
  EXPECT_EQ(StateOf("fl-b"), MachineState::kStarting);
  Pass(absl::Minutes(2));
  EXPECT_EQ(StateOf("fl-b"), MachineState::kRunning);
  EXPECT_EQ(Reports("fl-b").size(), 2u);
  EXPECT_EQ(Reports("fl-b").back().request_uid, "u-fl-b");
}

TEST_F(GroupsOrders, IsCutToTheMaximum) {
  cloud_.groups["g"].told.max_size = 3;
  cloud_.AddMachine("g");
  const auto asked = LaunchSet({{"fl-1"}, {"fl-2"}, {"fl-3"}, {"fl-4"}});
  Pass(absl::Seconds(1));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 2"));
  EXPECT_TRUE(asked[1]->answer.status.ok());
  for (int i : {2, 3}) {
    EXPECT_TRUE(absl::IsResourceExhausted(asked[i]->answer.status));
    EXPECT_EQ(asked[i]->answer.status.message(), "group g is at its maximum of 3");
  }
  cloud_.writes.clear();
  EXPECT_TRUE(absl::IsResourceExhausted([&] {
    const Asked* order = Launch({"fl-5"});
    Pass(absl::Seconds(3));
    return order->answer.status;
  }()));
  EXPECT_THAT(cloud_.writes, IsEmpty()) << "without a call";
}

TEST_F(GroupsOrders, AWholeSetBeyondTheMaximumIsRefusedWhole) {
  cloud_.groups["g"].told.max_size = 3;
  cloud_.AddMachine("g");
  const auto whole = [](const char* name) { return Wanted{.name = name, .whole = true}; };
  const auto asked = LaunchSet({whole("fl-1"), whole("fl-2"), whole("fl-3"), {"fl-4"}});
  Pass(absl::Seconds(1));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1")) << "what is of no set takes the room";
  for (int i : {0, 1, 2}) {
    EXPECT_TRUE(absl::IsResourceExhausted(asked[i]->answer.status));
    EXPECT_EQ(asked[i]->answer.status.message(),
              "group g: 3 machines are ordered together and would take it over its maximum of 3");
  }
  EXPECT_TRUE(asked[3]->answer.status.ok());
}

// Where a set is had whole or not at all, no other order is in its increase.
TEST_F(GroupsOrders, AnIncreaseForEachSet) {
  options_.one_increase_per_set = true;
  provider_.reset();
  Start();
  const auto whole = [](const char* name) { return Wanted{.name = name, .whole = true}; };
  LaunchSet({{"fl-1"}, whole("fl-2"), {"fl-3"}, whole("fl-4")});
  Pass(absl::Seconds(1));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1", "increase g 2", "increase g 1"));
  ASSERT_EQ(cloud_.increases.size(), 3u);
  const Increase& set = cloud_.increases[1];
  ASSERT_EQ(set.requests.size(), 2u);
  EXPECT_EQ(set.requests[0].name + set.requests[1].name, "fl-2fl-4");
  EXPECT_EQ(set.requests[1].uid, "u-fl-4");
}

TEST_F(GroupsOrders, TheTokenOfAnIncreaseIsThatOfItsRequests) {
  const auto token_of = [this](const std::vector<Wanted>& set) {
    provider_.reset();
    Start();
    cloud_.increases.clear();
    NextCalls("NodeGroupIncreaseSize", Fails(absl::InvalidArgumentError("no")));
    LaunchSet(set);
    Pass(absl::Seconds(1));
    return cloud_.increases.size() == 1 ? cloud_.increases[0].token : "none";
  };
  const std::string token = token_of({{"fl-1"}, {"fl-2"}});
  EXPECT_EQ(token_of({{"fl-2"}, {"fl-1"}}), token) << "in another process, in another order";
  EXPECT_NE(token_of({{"fl-1"}}), token);
  EXPECT_NE(token_of({{"fl-1"}, {.name = "fl-2", .uid = "another"}}), token);
  cloud_.AddGroup("h");
  EXPECT_NE(token_of({{"fl-1", "h"}, {"fl-2", "h"}}), token);
}

// Rule 4: a machine that has come while no process knew its order is that of an order that waits.
TEST_F(GroupsOrders, WhatIsKnownToBeOrderedIsTaken) {
  const std::string ours = cloud_.AddMachine("g");
  const std::string claimed = cloud_.AddMachine("g");
  for (const std::string& id : {ours, claimed}) cloud_.groups["g"].machines[id].ordered = true;
  const std::string theirs = cloud_.AddMachine("g");
  provider_.reset();
  Start();
  LaunchSet({{.name = "fl-1", .phase = Phase::kLaunched},
             {.name = "fl-2", .phase = Phase::kLaunched, .provider_id = claimed}});
  Pass(absl::Seconds(10));
  EXPECT_EQ(IdOf("fl-1"), ours);
  EXPECT_EQ(StateOf("fl-1"), MachineState::kRunning);
  EXPECT_EQ(IdOf("fl-2"), claimed);
  Launch({"fl-3"});  // nothing is left for it but those of others
  Pass(absl::Seconds(10));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
  EXPECT_NE(IdOf("fl-3"), theirs);
}

TEST_F(GroupsOrders, AnOrderInDoubtTakesWhatIsKnownToBeOrdered) {
  const std::string ours = cloud_.AddMachine("g");
  cloud_.groups["g"].machines[ours].ordered = true;
  provider_.reset();
  Start();
  const Asked* order = Launch({"fl-1"});
  Pass(absl::Seconds(10));
  EXPECT_TRUE(order->answer.status.ok());
  EXPECT_EQ(IdOf("fl-1"), ours);
  EXPECT_THAT(cloud_.writes, IsEmpty());
}

TEST_F(GroupsOrders, ARefusalHasTheClassThatThePortKnows) {
  Launch({"fl-1"});
  Pass(absl::Seconds(6));
  CloudInstance& machine = cloud_.groups["g"].machines.begin()->second;
  machine.error_code = "QuotaExceeded";
  machine.failure = FailureClass::kQuota;
  Pass(absl::Seconds(10));
  ASSERT_EQ(StateOf("fl-1"), MachineState::kGone);
  EXPECT_EQ(ClassifyFailure(Reports("fl-1").back().why), FailureClass::kQuota);
}

TEST_F(GroupsOrders, MachinesOfOthersAreNotTaken) {
  const std::string theirs = cloud_.AddMachine("g", InstanceState::kCreating);
  Pass(absl::Seconds(15));  // it is listed, and was not in the first list
  Launch({"fl-1"});
  Pass(absl::Seconds(20));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
  EXPECT_NE(IdOf("fl-1"), theirs);
  EXPECT_EQ(Reports("fl-1").size(), 1u);
}

TEST_F(GroupsOrders, RefusalsKeepTheirCodes) {
  const auto refusals = {absl::PermissionDeniedError("no"), absl::UnauthenticatedError("no"),
                         absl::ResourceExhaustedError("no"), absl::InvalidArgumentError("no"),
                         absl::UnimplementedError("no")};
  int number = 0;
  for (const absl::Status& refusal : refusals) {
    NextCalls("NodeGroupIncreaseSize", Fails(refusal));
    const Asked* order = Launch({absl::StrCat("fl-", ++number)});
    Pass(absl::Seconds(1));
    EXPECT_EQ(order->answer.status.code(), refusal.code());
  }
  EXPECT_THAT(cloud_.writes, IsEmpty());
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(GroupsOrders, AnErrorWithoutACodeIsCheckedAgainstTheTargetSize) {
  for (const bool done : {false, true}) {
    const absl::Status unknown = absl::UnknownError("rpc timeout in the cloud");
    NextCalls("NodeGroupIncreaseSize", done ? LosesReply(unknown) : Fails(unknown));
    const Asked* order = Launch({absl::StrCat("fl-", done)});
    Pass(absl::Seconds(5));
    EXPECT_EQ(order->answers, 1);
    EXPECT_EQ(order->answer.status.code(),
              done ? absl::StatusCode::kOk : absl::StatusCode::kInternal);
    Pass(absl::Seconds(20));
    EXPECT_EQ(IdOf(absl::StrCat("fl-", done)).empty(), !done);
  }
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

TEST_F(GroupsOrders, NothingIsWrittenWhileAnIncreaseIsInDoubt) {
  for (const absl::Status& unknown :
       {absl::UnavailableError("reset"), absl::DeadlineExceededError("5s")}) {
    const std::string name = absl::StrCat("fl-", static_cast<int>(unknown.code()));
    NextCalls("NodeGroupIncreaseSize", Fails(unknown));
    const Asked* order = Launch({name});
    Pass(absl::Seconds(1));
    const Asked* other = Launch({name + "-other"});
    const Asked* again = Launch({name});
    Pass(absl::Seconds(25));
    EXPECT_EQ(order->answers + other->answers + again->answers, 0);
    EXPECT_THAT(cloud_.writes, IsEmpty());
    Pass(absl::Seconds(15));
    EXPECT_EQ(order->answer.status.code(), unknown.code());
    EXPECT_EQ(again->answer.status.code(), unknown.code());
    EXPECT_TRUE(other->answer.status.ok());
    EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
    cloud_.writes.clear();
  }
}

TEST_F(GroupsOrders, AnIncreaseWhoseAnswerIsLostIsNotRepeated) {
  NextCalls("NodeGroupIncreaseSize", LosesReply(absl::UnavailableError("reset")));
  const auto asked = LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Seconds(20));
  for (const Asked* order : asked) EXPECT_TRUE(order->answer.status.ok());
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 2"));
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0001");
  EXPECT_EQ(IdOf("fl-2"), "cloud:///i-0002");
}

TEST_F(GroupsOrders, AMachineMayBeListedBeforeTheTargetSizeShowsTheIncrease) {
  NextCalls("NodeGroupIncreaseSize", LosesReply(absl::UnavailableError("reset")));
  cloud_.groups["g"].wrong_target = 0;
  const Asked* order = Launch({"fl-1"});
  Pass(absl::Seconds(15));
  EXPECT_EQ(order->answers, 0);
  cloud_.groups["g"].wrong_target.reset();
  Pass(absl::Seconds(5));
  EXPECT_TRUE(order->answer.status.ok());
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0001");
}

TEST_F(GroupsOrders, OfAPartialIncreaseTheFirstOrdersAreAccepted) {
  NextCalls("NodeGroupIncreaseSize", [&](const FakeCloud::Work&, const FakeCloud::Reply& reply) {
    ++cloud_.groups["g"].target;
    cloud_.Fill("g");
    reply(absl::UnknownError("the cloud gave one of two"));
  });
  const auto asked = LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Seconds(20));
  EXPECT_TRUE(asked[0]->answer.status.ok());
  EXPECT_TRUE(absl::IsInternal(asked[1]->answer.status));
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0001");
}

TEST_F(GroupsOrders, AnswersThatComeTwiceOrNever) {
  NextCalls("NodeGroupIncreaseSize", Twice());
  const Asked* twice = Launch({"fl-1"});
  Pass(absl::Seconds(20));
  EXPECT_TRUE(twice->answer.status.ok());
  NextCalls("NodeGroupIncreaseSize", Never());
  const Asked* never = Launch({"fl-2"});
  Pass(absl::Minutes(2) + absl::Seconds(20));
  EXPECT_EQ(never->answers, 0) << "the target size does not show it, and it may still come";
  Pass(absl::Minutes(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(never->answer.status));
  EXPECT_THAT(never->answer.status.message(), HasSubstr("NodeGroupIncreaseSize"));
}

TEST_F(GroupsOrders, AGroupThatTheServerDoesNotHave) {
  const Asked* order = Launch({"fl-1", "no-such-group"});
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(order->answer.status));
  EXPECT_THAT(cloud_.writes, IsEmpty());
}

TEST_F(GroupsOrders, AnOrderIsCarriedOutOnce) {
  Launch({"fl-1"});
  Launch({"fl-1"});
  Pass(absl::Seconds(20));
  const Asked* again = Launch({"fl-1"});
  const Asked* other = Launch({"fl-1", "g", Phase::kPending, "", "another-uid"});
  Pass(absl::Seconds(20));
  EXPECT_EQ(again->answer.machine_id, "cloud:///i-0001");
  EXPECT_TRUE(absl::IsUnavailable(other->answer.status)) << other->answer.status;
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

// ---- the next process

TEST_F(GroupsOrders, AfterARestartAnIdIsBelieved) {
  const std::string id = cloud_.AddMachine("g", InstanceState::kCreating);
  const std::string other = cloud_.AddMachine("g");
  Restart();
  const auto asked = LaunchSet({{"fl-1", "g", Phase::kLaunched, id},
                                {"fl-2", "g", Phase::kRegistered, other},
                                {"fl-3", "g", Phase::kLaunched, "cloud:///gone"}});
  Pass(absl::Seconds(10));
  for (const Asked* order : asked) EXPECT_TRUE(order->answer.status.ok());
  EXPECT_EQ(StateOf("fl-1"), MachineState::kStarting);
  EXPECT_EQ(StateOf("fl-2"), MachineState::kRunning);
  ASSERT_EQ(StateOf("fl-3"), MachineState::kGone);
  EXPECT_EQ(ClassifyFailure(Reports("fl-3").back().why), FailureClass::kOther);
  EXPECT_THAT(cloud_.writes, IsEmpty());
}

TEST_F(GroupsOrders, ALaunchedOrderTakesWhatIsBeingCreated) {
  cloud_.AddMachine("g");  // it runs, and has a node
  const std::string creating = cloud_.AddMachine("g", InstanceState::kCreating);
  Restart();
  LaunchSet({{"fl-1", "g", Phase::kLaunched}, {"fl-2", "g", Phase::kLaunched}});
  Pass(absl::Seconds(15));
  EXPECT_EQ(IdOf("fl-1"), creating);
  EXPECT_EQ(StateOf("fl-2"), std::nullopt) << "it waits";
  EXPECT_THAT(cloud_.writes, IsEmpty()) << "its increase was accepted before";
  const std::string late = cloud_.AddMachine("g", InstanceState::kRunning);
  Pass(absl::Seconds(15));
  EXPECT_EQ(IdOf("fl-2"), late);
}

TEST_F(GroupsOrders, APendingOrderIsInDoubtAfterARestart) {
  const std::string creating = cloud_.AddMachine("g", InstanceState::kCreating);
  Restart();
  const auto asked = LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Seconds(20));
  EXPECT_EQ(asked[0]->answer.machine_id, creating);
  EXPECT_EQ(IdOf("fl-1"), creating);
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
  EXPECT_EQ(IdOf("fl-2"), "cloud:///i-0002");
}

TEST_F(GroupsOrders, AnOrderInDoubtWhoseGuessIsTakenBackIncreases) {
  const std::string creating = cloud_.AddMachine("g", InstanceState::kCreating);
  Restart();
  Launch({"fl-1"});
  Pass(absl::Seconds(5));
  EXPECT_EQ(IdOf("fl-1"), creating);
  NextCalls("Refresh", Fails(absl::UnavailableError("reset")), 2);
  End("fl-2", creating);
  Pass(absl::Minutes(1));
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0002");
  End("fl-2", creating);
  Pass(absl::Seconds(20));
  EXPECT_FALSE(cloud_.Has(creating));
}

TEST_F(GroupsOrders, ATakenBackGuessThatCannotBeReplacedIsGone) {
  cloud_.groups["g"].told.max_size = 1;
  const std::string creating = cloud_.AddMachine("g", InstanceState::kCreating);
  Restart();
  Launch({"fl-1"});
  Pass(absl::Seconds(5));
  Launch({"fl-2", "g", Phase::kLaunched, creating});
  Pass(absl::Seconds(5));
  EXPECT_EQ(IdOf("fl-2"), creating);
  ASSERT_EQ(StateOf("fl-1"), MachineState::kGone);
  EXPECT_TRUE(absl::IsResourceExhausted(Reports("fl-1").back().why));
}

TEST_F(GroupsOrders, WhatARequestHasRecordedBeatsAGuess) {
  const std::string creating = cloud_.AddMachine("g", InstanceState::kCreating);
  Restart();
  Launch({"fl-1", "g", Phase::kLaunched});
  Pass(absl::Seconds(5));
  EXPECT_EQ(IdOf("fl-1"), creating);
  Launch({"fl-2", "g", Phase::kLaunched, creating});
  Pass(absl::Seconds(5));
  EXPECT_EQ(IdOf("fl-2"), creating);
  const std::string other = cloud_.AddMachine("g", InstanceState::kCreating);
  Pass(absl::Seconds(5));
  EXPECT_EQ(IdOf("fl-1"), other);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr(creating)));
  // The end of a request that has recorded the id, too.
  End("fl-3", other);
  const std::string third = cloud_.AddMachine("g", InstanceState::kCreating);
  Pass(absl::Seconds(15));
  EXPECT_EQ(IdOf("fl-1"), third);
  EXPECT_FALSE(cloud_.Has(other));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr(creating), HasSubstr(other)));
}

}  // namespace
}  // namespace fairlead::hook
