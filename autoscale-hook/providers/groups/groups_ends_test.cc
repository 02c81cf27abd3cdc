// Machines that do not come, or go, and ends, with answers that come late, or as errors.
#include "autoscale-hook/providers/groups/groups_fixture_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GroupsEnds : public GroupsFixture {
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

// ---- machines that do not come, or go

TEST_F(GroupsEnds, AMachineThatCannotBeCreatedIsRemovedAndReported) {
  for (const int32_t error_class : {kOutOfResources, 99}) {
    const std::string name = absl::StrCat("fl-", error_class);
    cloud_.groups["g"].error_code = "E42";
    cloud_.groups["g"].error_class = error_class;
    Launch({name});
    Pass(absl::Seconds(20));
    ASSERT_EQ(StateOf(name), MachineState::kGone);
    EXPECT_EQ(ClassifyFailure(Reports(name).back().why),
              error_class == kOutOfResources ? FailureClass::kStockout : FailureClass::kOther);
    EXPECT_THAT(Reports(name).back().why.message(), HasSubstr("group g: E42: as asked"));
    EXPECT_FALSE(cloud_.Has(Reports(name).back().machine_id));
  }
  EXPECT_EQ(cloud_.groups["g"].target, 0);
}

TEST_F(GroupsEnds, ThatMachineIsGoneAlsoIfItVanishesByItself) {
  cloud_.groups["g"].error_code = "E42";
  NextCalls("NodeGroupDeleteNodes", Fails(absl::UnknownError("min size reached")), 1000);
  Launch({"fl-1"});
  Pass(absl::Seconds(20));
  EXPECT_EQ(StateOf("fl-1"), MachineState::kStarting);
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("min size reached")));
  EXPECT_LE(cloud_.calls["NodeGroupDeleteNodes"], 12) << "once in a round";
  cloud_.Vanish(IdOf("fl-1"));
  Pass(absl::Seconds(5));
  ASSERT_EQ(StateOf("fl-1"), MachineState::kGone);
  EXPECT_TRUE(absl::IsResourceExhausted(Reports("fl-1").back().why));
}

TEST_F(GroupsEnds, TheErrorOfAMachineOfOthersIsNotOurs) {
  const std::string theirs = cloud_.AddMachine("g", InstanceState::kCreating);
  cloud_.groups["g"].machines[theirs].error_code = "E42";
  Restart();
  Launch({"fl-1", "g", Phase::kLaunched});
  Pass(absl::Minutes(1));
  EXPECT_THAT(cloud_.writes, IsEmpty());
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(GroupsEnds, ALostMachineIsReportedAndNotReplaced) {
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  cloud_.groups["g"].machines.clear();  // the target size stays
  Pass(absl::Seconds(40));
  EXPECT_EQ(StateOf("fl-1"), MachineState::kGone);
  EXPECT_EQ(IdOf("fl-1"), "cloud:///i-0001");
  EXPECT_EQ(cloud_.groups["g"].target, 0);
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1", "decrease g 1"));
}

TEST_F(GroupsEnds, AMachineThatTwoListsLeaveOutIsNotGone) {
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  const size_t reports = reports_.size();
  cloud_.groups["g"].wrong_list = std::vector<CloudInstance>{};
  Pass(absl::Seconds(20));
  cloud_.groups["g"].wrong_list.reset();
  Pass(absl::Minutes(1));
  EXPECT_EQ(reports_.size(), reports);
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

// AWS lists places for machines to come.
TEST_F(GroupsEnds, APlaceholderIsNoMachine) {
  cloud_.groups["g"].creates = false;
  Launch({"fl-1"});
  Pass(absl::Seconds(1));
  const std::string place = "aws:///z1/i-placeholder-g-0";
  cloud_.groups["g"].machines[place] = {.id = place, .placeholder = true};
  Pass(absl::Seconds(10));
  EXPECT_EQ(StateOf("fl-1"), MachineState::kStarting);
  EXPECT_EQ(IdOf("fl-1"), "");
  cloud_.groups["g"].machines.clear();
  cloud_.groups["g"].machines["aws:///z1/i-1"] = {"aws:///z1/i-1"};
  Pass(absl::Seconds(10));
  EXPECT_EQ(IdOf("fl-1"), "aws:///z1/i-1");
  EXPECT_EQ(StateOf("fl-1"), MachineState::kStarting) << "AWS tells no states";
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1"));
}

TEST_F(GroupsEnds, TheEndOfAnOrderWithAPlaceholderRemovesThePlace) {
  cloud_.groups["g"].creates = false;
  Launch({"fl-1"});
  Pass(absl::Seconds(1));
  const std::string place = "aws:///z1/i-placeholder-g-0";
  cloud_.groups["g"].machines[place] = {.id = place, .placeholder = true};
  Pass(absl::Seconds(10));
  const Asked* end = End("fl-1");
  Pass(absl::Seconds(10));
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1", "delete g " + place));
}

// A place that becomes the former id of a machine stays with its order: the machine of a place of
// others is not new.
TEST_F(GroupsEnds, AMachineIsKnownByItsFormerPlace) {
  cloud_.groups["g"].creates = false;
  cloud_.groups["g"].machines["place-0"] = {.id = "place-0", .placeholder = true};
  cloud_.groups["g"].target = 1;
  Pass(absl::Seconds(10));
  LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Seconds(1));
  for (const char* place : {"place-1", "place-2"}) {
    cloud_.groups["g"].machines[place] = {.id = place, .placeholder = true};
  }
  Pass(absl::Seconds(10));
  cloud_.groups["g"].machines.clear();
  // The ids are in the opposite order.
  for (const auto& [id, place] :
       {std::pair("i-9", "place-0"), {"i-2", "place-1"}, {"i-1", "place-2"}}) {
    cloud_.groups["g"].machines[id] = {
        .id = id, .state = InstanceState::kRunning, .former_id = place};
  }
  Pass(absl::Seconds(10));
  EXPECT_EQ(IdOf("fl-1"), "i-2");
  EXPECT_EQ(IdOf("fl-2"), "i-1");
  EXPECT_EQ(StateOf("fl-1"), MachineState::kRunning);
}

TEST_F(GroupsEnds, AMachineThatWasAPlaceOfOthersIsNotTaken) {
  cloud_.groups["g"].creates = false;
  cloud_.groups["g"].machines["place-0"] = {.id = "place-0", .placeholder = true};
  cloud_.groups["g"].target = 1;
  Pass(absl::Seconds(10));
  Launch({"fl-1"});
  Pass(absl::Seconds(1));
  cloud_.groups["g"].machines.clear();
  cloud_.groups["g"].machines["i-0"] = {.id = "i-0", .former_id = "place-0"};
  Pass(absl::Seconds(10));
  EXPECT_EQ(IdOf("fl-1"), "");
  cloud_.groups["g"].machines["i-1"] = {"i-1", InstanceState::kRunning};
  Pass(absl::Seconds(10));
  EXPECT_EQ(IdOf("fl-1"), "i-1");
}

// ---- ends

TEST_F(GroupsEnds, EndsAMachineById) {
  LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Minutes(2));
  const std::string id = IdOf("fl-1");
  const Asked* end = End("fl-1", id);
  Pass(absl::Seconds(2));
  EXPECT_EQ(end->answers, 0) << "it is still listed";
  EXPECT_EQ(StateOf("fl-1"), MachineState::kEnding);
  Pass(absl::Seconds(10));
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
  EXPECT_EQ(StateOf("fl-1"), MachineState::kGone);
  EXPECT_TRUE(Reports("fl-1").back().why.ok());
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 2", "delete g " + id));
  EXPECT_EQ(cloud_.groups["g"].target, 1);
}

TEST_F(GroupsEnds, EndsAMachineOfAFormerProcess) {
  const std::string id = cloud_.AddMachine("g");
  const Asked* end = End("fl-1", id);
  Pass(absl::Seconds(15));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_FALSE(cloud_.Has(id));
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(GroupsEnds, ADeletionIsNotRepeatedWhileTheMachineIsListed) {
  cloud_.groups["g"].ends_after = absl::Minutes(5);
  LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Minutes(2));
  cloud_.writes.clear();
  const std::string id = IdOf("fl-1");
  for (int i = 0; i < 4; ++i) {
    End("fl-1", id);
    Pass(absl::Minutes(1));
    cloud_.groups["g"].machines[id].state = InstanceState::kUnspecified;  // no states are told
  }
  EXPECT_EQ(cloud_.writes.size(), 1u) << "each would lower the target size again";
  Pass(absl::Minutes(2));
  for (size_t i = 2; i < asked_.size(); ++i) EXPECT_EQ(asked_[i].answers, 1);
}

TEST_F(GroupsEnds, AGroupIsNotTakenBelowItsMinimum) {
  cloud_.groups["g"].told.min_size = 1;
  const std::string id = cloud_.AddMachine("g");
  const Asked* end = End("fl-1", id);
  Pass(absl::Seconds(15));
  EXPECT_TRUE(absl::IsFailedPrecondition(end->answer.status));
  EXPECT_EQ(end->answer.status.message(), "group g is at its minimum of 1");
  EXPECT_THAT(cloud_.writes, IsEmpty());
  const std::string other = cloud_.AddMachine("g");
  const Asked* first = End("fl-1", id);
  const Asked* second = End("fl-2", other);
  Pass(absl::Seconds(15));
  EXPECT_TRUE(first->answer.status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(second->answer.status)) << "of the same round";
}

TEST_F(GroupsEnds, TheServersRefusalOfADeletionIsTheAnswer) {
  const std::string id = cloud_.AddMachine("g");
  NextCalls("NodeGroupDeleteNodes", Fails(absl::FailedPreconditionError("protected")));
  const Asked* end = End("fl-1", id);
  Pass(absl::Seconds(15));
  EXPECT_TRUE(absl::IsFailedPrecondition(end->answer.status));
  EXPECT_TRUE(cloud_.Has(id));
}

TEST_F(GroupsEnds, AnEndWithoutAnIdTakesTheOpenPlaceBack) {
  cloud_.groups["g"].creates = false;
  LaunchSet({{"fl-1"}, {"fl-2"}});
  Pass(absl::Seconds(1));
  const Asked* end = End("fl-1");
  Pass(absl::Seconds(5));
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 2", "decrease g 1"));
  cloud_.groups["g"].creates = true;
  cloud_.Fill("g");
  Pass(absl::Seconds(15));
  EXPECT_THAT(Reports("fl-1"), IsEmpty());
  EXPECT_EQ(IdOf("fl-2"), "cloud:///i-0001");
}

TEST_F(GroupsEnds, AMachineThatComesGoesToAnOrderThatIsWanted) {
  cloud_.groups["g"].creates = false;
  Launch({"fl-1"});
  Launch({"fl-2"});
  Pass(absl::Seconds(1));
  cloud_.groups["g"].machines["cloud:///new"] = {"cloud:///new", InstanceState::kCreating};
  const Asked* end = End("fl-1");
  Pass(absl::Seconds(5));
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
  EXPECT_EQ(IdOf("fl-2"), "cloud:///new");
  EXPECT_EQ(cloud_.groups["g"].target, 1);
}

TEST_F(GroupsEnds, AnEndWithoutAnIdEndsNoMachine) {
  Launch({"fl-1"});
  Pass(absl::Seconds(20));
  const Asked* end = End("fl-1");
  EXPECT_TRUE(absl::IsFailedPrecondition(end->answer.status));
  EXPECT_EQ(end->answer.machine_id, "cloud:///i-0001");
  // The machine comes while the place is taken back: the cloud refuses that.
  Launch({"fl-2"});
  Pass(absl::Seconds(5) - absl::Milliseconds(20));
  const Asked* late = End("fl-2");
  Pass(absl::Seconds(10));
  EXPECT_EQ(late->answers, 1);
  EXPECT_EQ(late->answer.status.ok(), cloud_.groups["g"].machines.size() == 1)
      << late->answer.status;
}

TEST_F(GroupsEnds, APlaceIsNotTakenBackTwice) {
  cloud_.groups["g"].creates = false;
  Launch({"fl-1"});
  Pass(absl::Seconds(1));
  NextCalls("NodeGroupDecreaseTargetSize", LosesReply(absl::UnavailableError("reset")));
  const Asked* lost = End("fl-1");
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(lost->answer.status));
  cloud_.groups["g"].creates = true;
  Launch({"fl-2"});
  Pass(absl::Seconds(1));
  const Asked* end = End("fl-1");
  Pass(absl::Seconds(10));
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
  EXPECT_EQ(cloud_.groups["g"].target, 1) << "the place of fl-2";
  EXPECT_EQ(IdOf("fl-2"), "cloud:///i-0001") << "and its machine";
}

TEST_F(GroupsEnds, AnEndWaitsForAnIncreaseInDoubt) {
  cloud_.groups["g"].creates = false;
  NextCalls("NodeGroupIncreaseSize", LosesReply(absl::UnavailableError("reset")));
  Launch({"fl-1"});
  Pass(absl::Milliseconds(100));
  const Asked* end = End("fl-1");
  Pass(absl::Seconds(10));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_THAT(cloud_.writes, ElementsAre("increase g 1", "decrease g 1"));
  EXPECT_EQ(cloud_.groups["g"].target, 0);
}

TEST_F(GroupsEnds, AnEndIsNotOkWhileAListCannotBeRead) {
  cloud_.AddGroup("h");
  NextCalls("NodeGroupNodes", Fails(absl::UnavailableError("reset")), 1000);
  const Asked* end = End("fl-1", "cloud:///unknown");
  Pass(absl::Seconds(15));
  EXPECT_TRUE(absl::IsUnavailable(end->answer.status));
}

TEST_F(GroupsEnds, AMachineOfAGroupThatIsNoLongerServed) {
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  const auto group = cloud_.groups["g"];
  cloud_.groups.erase("g");
  cloud_.AddGroup("h");
  Pass(absl::Seconds(15));
  const Asked* end = End("fl-1", IdOf("fl-1"));
  Pass(absl::Seconds(15));
  EXPECT_TRUE(absl::IsFailedPrecondition(end->answer.status)) << end->answer.status;
  EXPECT_EQ(StateOf("fl-1"), MachineState::kRunning) << "nothing is known of it";
  cloud_.groups["g"] = group;
  Pass(absl::Seconds(15));
  EXPECT_EQ(StateOf("fl-1"), MachineState::kRunning);
}

TEST_F(GroupsEnds, AMachineThatEndsLeavesTheOpenPlacesOfOthers) {
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  cloud_.groups["g"].creates = false;
  cloud_.groups["g"].ends_after = absl::Minutes(5);
  Launch({"fl-2"});
  Pass(absl::Seconds(5));
  End("fl-1", IdOf("fl-1"));
  Pass(absl::Seconds(5));
  const Asked* end = End("fl-2");
  Pass(absl::Seconds(10));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_EQ(cloud_.groups["g"].target, 0) << "the machine that ends does not fill the place";
}

TEST_F(GroupsEnds, OneListWithoutTheMachineIsNoEnd) {
  Launch({"fl-1"});
  Pass(absl::Minutes(2));
  cloud_.groups["g"].ends_after = absl::Minutes(5);
  const Asked* end = End("fl-1", IdOf("fl-1"));
  Pass(absl::Seconds(1));
  cloud_.groups["g"].wrong_list = std::vector<CloudInstance>{};
  Pass(absl::Seconds(2));
  cloud_.groups["g"].wrong_list.reset();
  Pass(absl::Minutes(1));
  EXPECT_EQ(end->answers, 0);
  EXPECT_NE(StateOf("fl-1"), MachineState::kGone);
}

TEST_F(GroupsEnds, ManyOrdersAndEnds) {
  cloud_.groups["g"].told.max_size = 2000;
  std::vector<Wanted> set;
  for (int i = 0; i < 1000; ++i) set.push_back({absl::StrCat("fl-", i)});
  LaunchSet(set);
  Pass(absl::Minutes(2));
  for (const Wanted& wanted : set) End(wanted.name, IdOf(wanted.name));
  Pass(absl::Minutes(2));
  for (const Asked& asked : asked_) EXPECT_TRUE(asked.answer.status.ok()) << asked.answer.status;
  EXPECT_EQ(cloud_.groups["g"].target, 0);
  EXPECT_EQ(cloud_.writes.size(), 1001u);
}

}  // namespace
}  // namespace fairlead::hook
