// No machine is ended before a consistent list shows that no node of it exists.
#include "autoscale-hook/machines/node_lists.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "gmock/gmock.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using ::testing::HasSubstr;
using testing::HookTest;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeListsTest : public HookTest {
 protected:
  NodeListsTest() { answer_lists_ = false; }
  // A launched machine without a node, in phase Draining.
  void Cancel() {
    BuyLaunched();
    CancelUnneeded();
  }
  StepOutput Answered(const StepOutput& out, const absl::Status& status,
                      const std::vector<ListedNode>& unseen = {}) {
    EXPECT_TRUE(AnswerList(out, status, unseen));
    return StepAndApply();
  }
  // Steps, each at its time to wake or a second after an answer. `answers`: true if it gave one.
  void PassUntil(absl::Time end, const std::function<bool(const StepOutput&)>& answers) {
    while (now_ < end) {
      const StepOutput out = StepAndApply();
      ASSERT_LT(out.wake_at, absl::InfiniteFuture()) << "it would be left for ever";
      now_ += absl::Seconds(1);
      if (!answers(out)) now_ = std::max(now_, out.wake_at);
    }
  }
  std::vector<ListedNode> Unseen() { return {{"ip-1", "node-uid", TheName(), ""}}; }
};

TEST_F(NodeListsTest, OneListThatShowsNoNodeIsEnough) {
  Cancel();
  const StepOutput out = StepAndApply();
  EXPECT_THAT(out.ends, IsEmpty());
  EXPECT_NE(out.node_list, 0u);
  const StepOutput waiting = StepAndApply();
  EXPECT_EQ(waiting.node_list, 0u) << "one is in flight";
  EXPECT_THAT(waiting.actions, IsEmpty());
  EXPECT_THAT(Answered(out, absl::OkStatus()).ends, SizeIs(1));
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_THAT(requests_, IsEmpty());
  EXPECT_EQ(lists_, 1);
}

TEST_F(NodeListsTest, EveryWayThatEndsAMachineWithoutANodeWaits) {
  for (const char* way : {"cancelled", "deleted", "timed out", "its node went", "no object"}) {
    SCOPED_TRACE(way);
    requests_.clear();
    nodes_.clear();
    Restart();
    const absl::string_view how = way;
    if (how == "its node went") {
      BuyReady();
      nodes_.clear();
      StepAndApply();
      now_ += absl::Minutes(1);
    } else {
      BuyLaunched();
    }
    if (how == "cancelled") {
      nodes_.at(TheName()).needed = false;
      StepAndApply();
      now_ += options_.cancel_after;
    } else if (how == "deleted") {
      The().meta.deletion = now_;
    } else if (how == "timed out") {
      now_ += options_.ready_timeout;
    } else if (how == "no object") {
      requests_.clear();
    }
    StepOutput out = StepAndApply();
    if (out.node_list == 0) out = StepAndApply();
    EXPECT_NE(out.node_list, 0u);
    EXPECT_THAT(out.ends, IsEmpty());
    for (int i = 0; i < 20; ++i, now_ += absl::Seconds(1)) {
      EXPECT_THAT(StepAndApply().ends, IsEmpty());
    }
    EXPECT_THAT(Answered(out, absl::OkStatus()).ends, SizeIs(1));
  }
}

TEST_F(NodeListsTest, ANodeThatTheWatchHasNotShownKeepsTheMachineUntilItIsDrained) {
  Cancel();
  int lists = 0;
  PassUntil(now_ + absl::Minutes(10), [&](const StepOutput& out) {
    EXPECT_THAT(out.ends, IsEmpty());
    const bool answered = AnswerList(out, absl::OkStatus(), Unseen());
    lists += answered ? 1 : 0;
    return answered;
  });
  EXPECT_LE(lists, 15) << "5 s, doubling to a minute";
  EXPECT_GE(lists, 10);
  EXPECT_THAT(The().message, HasSubstr("its node ip-1 exists"));
  // Now the watch shows it, with a pod.
  nodes_.clear();
  nodes_["ip-1"] = Arrived("ip-1", TheName());
  nodes_["ip-1"].uid = "node-uid";
  nodes_["ip-1"].needed = true;
  EXPECT_THAT(All<model::SetNodeTaint>(StepAndApply()), SizeIs(1));
  EXPECT_THAT(The().message, HasSubstr("cancelled"));
  now_ += absl::Hours(1);
  EXPECT_THAT(StepAndApply().ends, IsEmpty());
  nodes_["ip-1"].needed = false;
  const StepOutput out = StepAndApply();
  EXPECT_THAT(out.ends, SizeIs(1));
  EXPECT_EQ(out.node_list, 0u) << "it went through its fence";
}

TEST_F(NodeListsTest, WithoutAListNothingIsEndedAndTheRequestSaysSo) {
  Cancel();
  const std::string before = The().message;
  int lists = 0, writes = 0;
  const absl::Time end = now_ + absl::Hours(1);
  PassUntil(end, [&](const StepOutput& out) {
    EXPECT_THAT(out.ends, IsEmpty());
    writes += static_cast<int>(All<model::UpdateNodeRequestStatus>(out).size());
    const bool answered = AnswerList(out, absl::PermissionDeniedError("nodes is forbidden"));
    lists += answered ? 1 : 0;
    return answered;
  });
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_THAT(The().message, HasSubstr("PERMISSION_DENIED: nodes is forbidden"));
  EXPECT_LE(lists, 70) << "5 s, doubling to a minute";
  EXPECT_GE(lists, 55);
  EXPECT_LE(writes, 1);
  StepOutput out = StepAndApply();
  for (; out.node_list == 0; out = StepAndApply()) now_ = std::max(now_, out.wake_at);
  EXPECT_THAT(Answered(out, absl::OkStatus()).ends, SizeIs(1));
  EXPECT_EQ(The().message, before);
}

TEST_F(NodeListsTest, AListWithoutAnAnswerIsRepeatedAndItsLateAnswerIsDropped) {
  Cancel();
  const StepOutput first = StepAndApply();
  now_ += absl::Seconds(59);
  EXPECT_EQ(StepAndApply().node_list, 0u);
  now_ += absl::Seconds(1);
  const StepOutput second = StepAndApply();
  EXPECT_GT(second.node_list, first.node_list);
  EXPECT_THAT(Answered(first, absl::OkStatus()).ends, IsEmpty());
  EXPECT_THAT(Answered(second, absl::OkStatus()).ends, SizeIs(1));
}

TEST_F(NodeListsTest, EveryAttemptAtTheEndHasAListOfItsOwn) {
  Cancel();
  StepOutput out = StepAndApply();
  out = Answered(out, absl::OkStatus());
  ASSERT_THAT(out.ends, SizeIs(1));
  Answer(false, absl::PermissionDeniedError("later"));
  now_ += absl::Seconds(30);
  out = StepAndApply();
  EXPECT_THAT(out.ends, IsEmpty());
  EXPECT_THAT(Answered(out, absl::OkStatus(), Unseen()).ends, IsEmpty()) << "it came meanwhile";
}

TEST_F(NodeListsTest, AListIsNoProofForAnIdThatIsLearnedAfterIt) {
  Cancel();
  StepOutput out = StepAndApply();
  out = Answered(out, absl::OkStatus());
  ASSERT_THAT(out.ends, SizeIs(1));
  Answer(false, absl::FailedPreconditionError("its nodes have no label"), "cloud://1");
  now_ += absl::Seconds(1);
  EXPECT_THAT(StepAndApply().ends, IsEmpty());
  now_ += kListPause;
  out = StepAndApply();
  EXPECT_THAT(out.ends, IsEmpty());
  const std::vector<ListedNode> unlabelled = {{"ip-1", "node-uid", "", "cloud://1"}};
  EXPECT_THAT(Answered(out, absl::OkStatus(), unlabelled).ends, IsEmpty());
}

// Machines that are cancelled at once, in steps of 100.
TEST_F(NodeListsTest, AThousandMachinesShareFewLists) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("fl-g-1-default-", 1000 + i);
    model::NodeRequest request;
    request.meta.name = name;
    request.meta.uid = absl::StrCat("uid-", name);
    request.meta.creation = now_;
    request.provider = "kwok";
    request.pool = "default";
    request.instance_type = "g.1";
    request.zone = "z1";
    request.phase = Phase::kLaunched;
    request.launched_at = now_;
    requests_[name] = request;
    nodes_[name].name = nodes_[name].node_request = name;
  }
  StepAndApply();
  now_ += options_.cancel_after;
  answer_lists_ = true;
  size_t ended = 0;
  for (int i = 0; i < 30; ++i, now_ += absl::Seconds(1)) {
    ended += StepAndApply().ends.size();
    Answer(false, absl::OkStatus());
  }
  EXPECT_EQ(ended, 1000u);
  EXPECT_LE(lists_, 4);
}

// A machine whose end was decided while a list was in flight waits for the next one.
TEST_F(NodeListsTest, AListThatBeganBeforeTheDecisionProvesNothing) {
  BuyLaunched();
  const std::string first = TheName();
  StepAndApply({testing::Item("team/b", testing::Spec(1000, 4, 1), 1)});
  ASSERT_THAT(requests_, SizeIs(2));
  for (const auto& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
  for (auto& [name, node] : nodes_) node.needed = name != first;
  StepAndApply();
  now_ += options_.cancel_after;
  StepAndApply();
  const StepOutput list = StepAndApply();
  ASSERT_NE(list.node_list, 0u);
  for (auto& [name, request] : requests_) {
    if (name != first) request.meta.deletion = now_;
  }
  StepAndApply();
  StepAndApply();
  StepOutput out = Answered(list, absl::OkStatus());
  ASSERT_THAT(out.ends, SizeIs(1));
  EXPECT_EQ(out.ends[0].request_name, first);
  EXPECT_EQ(out.node_list, 0u) << "there is a pause between two";
  now_ += kListPause;
  out = StepAndApply();
  EXPECT_THAT(Answered(out, absl::OkStatus()).ends, SizeIs(1));
}

TEST_F(NodeListsTest, AnAnswerFromBeforeAReloadProvesNothing) {
  Cancel();
  const StepOutput former = StepAndApply();
  Reload();
  const StepOutput out = StepAndApply();
  EXPECT_GT(out.node_list, former.node_list);
  EXPECT_THAT(Answered(former, absl::OkStatus()).ends, IsEmpty());
  EXPECT_THAT(Answered(out, absl::OkStatus()).ends, SizeIs(1));
}

}  // namespace
}  // namespace fairlead::hook
