// Which nodes are scaled down, and how.

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kStart;
using testing::Spec;

TEST_F(HookTest, RegisteredButNeverUsableIsRemovedOnlyBehindItsTaint) {
  BuyLaunched();
  NodeUse& node = nodes_.at(TheName());
  node.registered = true;
  StepAndApply();
  now_ += options_.ready_timeout;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  StepOutput out = StepAndApply();
  EXPECT_EQ(All<model::SetNodeTaint>(out).size(), 1u);
  EXPECT_TRUE(All<model::TerminateNode>(StepAndApply()).empty()) << "a pod is on it";
  node.needed = false;
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
}

// The call might reach the provider after the end of the machine.
TEST_F(HookTest, AMachineIsNotEndedWhileItsLaunchHasNoAnswer) {
  for (const bool answered : {true, false}) {
    SCOPED_TRACE(answered);
    Buy();
    CancelUnneeded();
    EXPECT_TRUE(All<model::TerminateNode>(StepAndApply()).empty());
    if (answered) {
      Answer(true, absl::OkStatus());
    } else {
      now_ += absl::Minutes(1);
    }
    EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
    Answer(false, absl::OkStatus());
    StepAndApply();
    EXPECT_TRUE(requests_.empty());
  }
}

TEST_F(HookTest, VanishedDemandCancelsTheOrder) {
  BuyLaunched();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  EXPECT_EQ(The().unneeded_since, now_);
  now_ += options_.cancel_after;
  const StepOutput out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_EQ(out.withdrawn.size(), 1u);
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_TRUE(requests_.empty());
}

TEST_F(HookTest, NeededAgainInTime) {
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  LeaveUnneeded();
  ASSERT_TRUE(node.removal_tainted);
  node.needed = true;
  const StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
  EXPECT_FALSE(node.removal_tainted);
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_FALSE(The().unneeded_since.has_value());
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(HookTest, TaintLeftByAFormerLifeIsTakenOff) {
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  node.removal_tainted = true;
  Restart();
  StepAndApply();
  EXPECT_FALSE(node.removal_tainted);
  // A removal that has begun continues.
  LeaveUnneeded();
  ASSERT_TRUE(node.removal_tainted);
  Restart();
  EXPECT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
}

TEST_F(HookTest, DrainingAfterARestartTerminatesAgainUnlessNeeded) {
  BuyReady();
  The().phase = Phase::kDraining;
  Restart();
  EXPECT_EQ(All<model::SetNodeTaint>(StepAndApply()).size(), 1u);
  EXPECT_TRUE(All<model::TerminateNode>(StepAndApply()).empty());
  nodes_.at(TheName()).needed = false;
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, CancelledNodeThatRegistersIsRemovedBehindItsTaint) {
  BuyLaunched();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.cancel_after;
  ASSERT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
  Answer(false, absl::InternalError("later"));
  nodes_[TheName()] = Arrived(TheName(), TheName());
  now_ += absl::Seconds(30);
  StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
  EXPECT_EQ(All<model::SetNodeTaint>(out).size(), 1u);
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, NothingIsRemovedOnMissingData) {
  BuyReady();
  nodes_.clear();
  StepAndApply();
  now_ += absl::Seconds(30);
  EXPECT_TRUE(StepAndApply().actions.empty());
  EXPECT_EQ(ThePhase(), Phase::kReady);
  now_ += absl::Seconds(30);  // gone for a minute: a user deleted the node
  EXPECT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kDraining);
}

// A provider launched twice. One machine is used for a long time, the other one costs money.
class SurplusTest : public HookTest {
 protected:
  // Until the taint is on it.
  void Wait() {
    StepAndApply();
    now_ += options_.unneeded_after;
    StepAndApply();
  }
  std::vector<std::string> Ended(const StepOutput& out) {
    std::vector<std::string> ended;
    for (const auto& end : All<model::TerminateNode>(out)) ended.push_back(end.provider_id);
    return ended;
  }
};

TEST_F(SurplusTest, TheUnusedOneEndsAloneBehindItsFence) {
  BuyTwo();
  StepOutput out = StepAndApply();
  EXPECT_LE(out.wake_at, now_ + options_.unneeded_after);
  now_ += options_.unneeded_after;
  nodes_["ip-2"].pods_settled = false;
  out = StepAndApply();
  ASSERT_TRUE(nodes_["ip-2"].removal_tainted);
  EXPECT_FALSE(nodes_.at(TheName()).removal_tainted);
  EXPECT_THAT(Ended(StepAndApply()), ::testing::IsEmpty()) << "a pod may be on it";
  nodes_["ip-2"].pods_settled = true;
  EXPECT_THAT(Ended(StepAndApply()), ::testing::ElementsAre("cloud://2"));
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_TRUE(StepAndApply().actions.empty()) << "asked once";
  Answer(false, absl::OkStatus());
  nodes_.erase("ip-2");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().node_name, TheName());
  // The other one ends as ever.
  LeaveUnneeded();
  EXPECT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
}

TEST_F(SurplusTest, TheRequestFollowsTheOneThatIsUsed) {
  BuyTwo();
  const std::string first = TheName();
  nodes_[first].needed = false;
  nodes_["ip-2"].needed = true;
  Wait();
  EXPECT_THAT(Ended(StepAndApply()), ::testing::ElementsAre("cloud://1"));
  nodes_.erase(first);
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().node_name, "ip-2");
  EXPECT_EQ(The().provider_id, "cloud://2");
}

TEST_F(SurplusTest, ThatIsUsedStays) {
  BuyTwo();
  Wait();
  nodes_["ip-2"].needed = true;  // bound by another scheduler before the taint was seen
  EXPECT_THAT(Ended(StepAndApply()), ::testing::IsEmpty());
  StepAndApply();
  EXPECT_FALSE(nodes_["ip-2"].removal_tainted);
  EXPECT_THAT(Ended(StepTwice()), ::testing::IsEmpty());
}

TEST_F(SurplusTest, BothEndTogetherIfNoneIsUsed) {
  BuyTwo();
  nodes_.at(TheName()).needed = false;
  Wait();
  EXPECT_TRUE(nodes_["ip-2"].removal_tainted);
  EXPECT_THAT(Ended(StepTwice()), ::testing::UnorderedElementsAre("cloud://1", "cloud://2"));
  EXPECT_EQ(ThePhase(), Phase::kDraining);
}

TEST_F(SurplusTest, WithoutAnIdItIsLeftAlone) {
  BuyTwo();
  nodes_["ip-2"].provider_id.clear();
  Wait();
  EXPECT_THAT(Ended(StepTwice()), ::testing::IsEmpty()) << "the provider would end both";
}

TEST_F(HookTest, NodesOfOthersAreNeverTouched) {
  nodes_["static-1"] = Arrived("static-1", "");
  nodes_["orphan"] = Arrived("orphan", "orphan");
  nodes_["named"] = Arrived("named", "fl-0123");  // without the labels that we launch with
  StepAndApply();
  now_ += absl::Hours(100);
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(HookTest, RemovalsAreBoundedPerStepDearestFirst) {
  options_.max_removals_per_step = 1;
  Restart();
  for (int i = 0; i < 3; ++i) {
    model::NodeRequest request;
    request.meta.name = absl::StrCat("r", i);
    request.meta.uid = absl::StrCat("u", i);
    request.phase = Phase::kReady;
    request.price_micro_usd_per_hour = i == 1 ? 9 : 1;
    request.unneeded_since = now_ - absl::Hours(1);
    requests_[request.meta.name] = request;
    nodes_[request.meta.name] = Arrived(request.meta.name, request.meta.name);
  }
  const auto taints = All<model::SetNodeTaint>(StepAndApply());
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(taints[0].node, "r1");
}

TEST_F(HookTest, DeletedRequestIsGivenBackAtOnceUnlessNeeded) {
  BuyReady();
  The().meta.deletion = now_;
  EXPECT_TRUE(StepAndApply().actions.empty());
  nodes_.at(TheName()).needed = false;
  EXPECT_EQ(All<model::SetNodeTaint>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, WakesAtWholeSecondsSoThatItsTimerIsDueThen) {
  BuyReady();
  LeaveUnneeded();
  ASSERT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
  now_ += absl::Milliseconds(300);
  Answer(false, absl::InternalError("later"));  // repeated 30 s after this answer
  int steps = 0;
  for (StepOutput out = StepAndApply(); All<model::TerminateNode>(out).empty(); ++steps) {
    ASSERT_GT(out.wake_at, now_) << "a step that did nothing wants to be called again at once";
    ASSERT_LT(steps, 5);
    now_ = out.wake_at;
    out = StepAndApply();
  }
  EXPECT_EQ(now_, kStart + options_.unneeded_after + absl::Seconds(31));
}

TEST_F(HookTest, ConfirmedEndIsKeptUntilTheNodeIsSeenToBeGone) {
  BuyReady();
  LeaveUnneeded();
  ASSERT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
  Answer(false, absl::OkStatus());
  StepAndApply();  // the watch still shows the node
  now_ += absl::Seconds(2);
  nodes_.clear();
  const StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
  EXPECT_EQ(All<model::DeleteNodeRequest>(out).size(), 1u) << "both are known: nothing to wait for";
}

TEST_F(HookTest, NodeWhoseRequestIsGoneGetsItsRequestBack) {
  BuyReady();
  const std::string name = TheName();
  const model::NodeRequest before = The();
  NodeUse& node = nodes_.at(name);
  node.instance_type = "g.1";
  node.zone = "z1";
  requests_.clear();  // deleted by force
  EXPECT_TRUE(StepAndApply().actions.empty()) << "a moment's absence is nothing";
  now_ += absl::Minutes(1);
  StepOutput out = StepAndApply();
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_TRUE(out.created[0].adopted);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(TheName(), name);
  EXPECT_EQ(The().instance_type, "g.1");
  EXPECT_EQ(The().price_micro_usd_per_hour, before.price_micro_usd_per_hour);
  EXPECT_EQ(The().meta.labels.Get("fairlead.dev/gpus"), "1");
  node.registered = node.ready = true;
  out = StepAndApply();
  EXPECT_TRUE(All<model::LaunchNode>(out).empty());
  EXPECT_EQ(ThePhase(), Phase::kReady);
  // From here on it is scaled down like any other.
  node.needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  EXPECT_EQ(All<model::SetNodeTaint>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, NodeOfUnknownTypeWhoseRequestIsGoneIsRemovedOnceNothingNeedsIt) {
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  node.instance_type = "left.the.catalogue";
  node.ready = false;  // its announced resources are unknown
  node.needed = true;
  requests_.clear();
  StepAndApply();
  now_ += absl::Minutes(1);
  StepAndApply();
  ASSERT_EQ(requests_.size(), 1u);
  node.registered = true;
  for (int i = 0; i < 40; ++i, now_ += absl::Minutes(1)) {
    EXPECT_TRUE(All<model::TerminateNode>(StepAndApply()).empty()) << "a pod is on it";
  }
  node.needed = false;
  bool terminated = false;
  for (int i = 0; i < 20 && !terminated; ++i, now_ += absl::Minutes(1)) {
    terminated = !All<model::TerminateNode>(StepAndApply()).empty();
  }
  EXPECT_TRUE(terminated);
}

// ---- sent requests are not trusted before they are confirmed

TEST_F(HookTest, FailedThatIsRefusedIsRepeatedAndNothingIsTerminatedBefore) {
  BuyLaunched();
  now_ += options_.ready_timeout;
  int writes = 0;
  for (int i = 0; i < 600; ++i, now_ += absl::Seconds(1)) {
    const StepOutput out = Step();
    EXPECT_TRUE(All<model::TerminateNode>(out).empty()) << "the API server never took Failed";
    for (const auto& update : All<model::UpdateNodeRequestStatus>(out)) {
      EXPECT_EQ(update.request->phase, Phase::kFailed);
      ++writes;
      hook_->OnStatusResult(update.request, absl::PermissionDeniedError("no"), now_);
    }
  }
  EXPECT_GE(writes, 5) << "repeated";
  EXPECT_LE(writes, 12) << "with growing pauses";
  now_ += absl::Minutes(5);
  const auto last = All<model::UpdateNodeRequestStatus>(Step());
  ASSERT_EQ(last.size(), 1u);
  hook_->OnStatusResult(last[0].request, absl::OkStatus(), now_);
  EXPECT_EQ(All<model::TerminateNode>(Step()).size(), 1u) << "an answer is enough";
}

// Taints and the end of the object follow the one rule for writes.
TEST_F(HookTest, ATaintThatFailsIsRepeatedEverLaterAndOneAttemptIsInFlight) {
  for (const absl::Status& answer :
       {absl::PermissionDeniedError("403"), absl::AbortedError("409"),
        absl::InvalidArgumentError("422"), absl::UnavailableError("no answer"),
        absl::NotFoundError("404")}) {
    SCOPED_TRACE(answer.ToString());
    requests_.clear();
    nodes_.clear();
    shown_.clear();
    Restart();
    BuyReady();
    nodes_.at(TheName()).needed = false;
    StepAndApply();
    now_ += options_.unneeded_after;
    std::vector<absl::Time> sent;
    for (int i = 0; i < 900; ++i, now_ += absl::Seconds(1)) {
      const StepOutput out = Step();
      EXPECT_TRUE(All<model::TerminateNode>(out).empty());
      if (All<model::SetNodeTaint>(out).empty()) continue;
      sent.push_back(now_);
      // The answer takes three seconds.
      for (int j = 0; j < 3; ++j, now_ += absl::Seconds(1)) {
        EXPECT_TRUE(All<model::SetNodeTaint>(Step()).empty());
      }
      hook_->OnTaintResult("node-uid", true, answer, now_);
    }
    ASSERT_GE(sent.size(), 5u);
    EXPECT_LE(sent.size(), 10u);
    for (size_t i = 2; i < sent.size(); ++i) {
      EXPECT_GE(sent[i] - sent[i - 1], sent[i - 1] - sent[i - 2]);
    }
    // It was done by one of the attempts: the watch decides.
    nodes_.at(TheName()).removal_tainted = true;
    StepAndApply();
    EXPECT_EQ(ThePhase(), Phase::kDraining);
  }
}

TEST_F(HookTest, AnEndOfTheObjectThatFailsIsRepeatedUntilItIsGone) {
  BuyLaunched();
  now_ += options_.ready_timeout;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  StepAndApply();
  Answer(false, absl::OkStatus());
  std::vector<absl::Time> sent;
  for (int i = 0; i < 900; ++i, now_ += absl::Seconds(1)) {
    const auto ends = All<model::DeleteNodeRequest>(Step());
    if (ends.empty()) continue;
    sent.push_back(now_);
    // OK, and the object stays: another finalizer.
    hook_->OnDeleteResult(ends[0].name, ends[0].uid,
                          sent.size() < 4 ? absl::PermissionDeniedError("403") : absl::OkStatus(),
                          now_);
  }
  ASSERT_GE(sent.size(), 5u);
  EXPECT_LE(sent.size(), 10u);
  EXPECT_EQ(sent[1] - sent[0], absl::Seconds(5));
  EXPECT_EQ(sent[2] - sent[1], absl::Seconds(10));
  // An answer about a former object of the name changes nothing.
  hook_->OnDeleteResult(TheName(), "another", absl::UnavailableError("late"), now_);
  requests_.clear();
  Show();
  EXPECT_TRUE(All<model::DeleteNodeRequest>(Step()).empty());
}

TEST_F(HookTest, DrainingThatIsLostKeepsTheMachine) {
  BuyReady();
  LeaveUnneeded();
  int writes = 0;
  for (int i = 0; i < 1200; ++i, now_ += absl::Seconds(1)) {
    const StepOutput out = Step();  // the write is lost, and its answer too
    writes += static_cast<int>(All<model::UpdateNodeRequestStatus>(out).size());
    EXPECT_TRUE(All<model::TerminateNode>(out).empty());
  }
  EXPECT_GE(writes, 5);
  EXPECT_LE(writes, 8);
  size_t terminated = 0;
  for (int i = 0; i < 310 && terminated == 0; ++i, now_ += absl::Seconds(1)) {
    terminated += All<model::TerminateNode>(StepAndApply()).size();
  }
  EXPECT_EQ(terminated, 1u);
}

// The answer came; then another leader's write replaced it.
TEST_F(HookTest, StatusOfAnotherLeaderIsTakenOverWhileNothingIsUnderWay) {
  BuyReady();
  Show();
  The().phase = Phase::kDraining;
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  EXPECT_FALSE(hook_->machines().Find(TheName())->Promises());
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u) << "behind its taint";
}

// ---- removal waits for pods that were bound before the taint

TEST_F(HookTest, NodeIsDrainedOnlyWhenThePodsBeforeItsTaintAreSeen) {
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  node.pods_settled = false;
  LeaveUnneeded();
  ASSERT_TRUE(node.removal_tainted);
  for (int i = 0; i < 100; ++i, now_ += absl::Seconds(10)) {
    EXPECT_TRUE(All<model::TerminateNode>(StepAndApply()).empty());
    ASSERT_EQ(ThePhase(), Phase::kReady);
  }
  node.pods_settled = true;
  EXPECT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
}

// ---- the provider's word

TEST_F(HookTest, RefusedTerminateIsRepeatedWithGrowingPausesAndTold) {
  BuyReady();
  LeaveUnneeded();
  int calls = 0;
  for (StepOutput out = StepTwice(); now_ < kStart + absl::Hours(6);) {
    calls += static_cast<int>(out.ends.size());
    Answer(false, absl::PermissionDeniedError("iam:TerminateInstances"));
    out = StepAndApply();
    if (calls > 0) {
      EXPECT_NE(The().message.find("iam:TerminateInstances"), std::string::npos) << The().message;
    }
    ASSERT_LT(out.wake_at, absl::InfiniteFuture()) << "it would be left for ever";
    now_ = std::max(now_ + absl::Seconds(1), out.wake_at);
  }
  EXPECT_GE(calls, 8);
  EXPECT_LE(calls, 24) << "30 s, doubling up to 30 minutes";
}

TEST_F(HookTest, UnansweredTerminateIsRepeatedAndTold) {
  BuyReady();
  LeaveUnneeded();
  int calls = 0;
  for (StepOutput out = StepTwice(); now_ < kStart + absl::Hours(2);) {
    calls += static_cast<int>(All<model::TerminateNode>(out).size());
    ASSERT_LT(out.wake_at, absl::InfiniteFuture()) << "it would be left for ever";
    now_ = std::max(now_ + absl::Seconds(1), out.wake_at);
    out = StepAndApply();
  }
  EXPECT_GE(calls, 5);
  EXPECT_LE(calls, 12);
  EXPECT_NE(The().message.find("has not answered"), std::string::npos) << The().message;
}

// ---- deleting a request

TEST_F(HookTest, DeletedWhileItBootsCountsUntilItsMachineIsGone) {
  options_.cluster_gpu_limit = 1;
  Restart();
  BuyLaunched();
  EXPECT_EQ(The().finalizers, std::vector<std::string>{model::kMachineFinalizer});
  The().meta.deletion = now_;
  const Demand demand = {Item("team/b", Spec(1000, 4, 1), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_EQ(out.withdrawn.size(), 1u) << "nothing is promised to it any more";
  EXPECT_EQ(out.outcomes[0].code, verdict::Code::kGpuCapReached);
  out = StepAndApply(demand);
  EXPECT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_TRUE(All<model::DeleteNodeRequest>(out).empty()) << "the finalizer stays";
  EXPECT_EQ(out.outcomes[0].code, verdict::Code::kGpuCapReached);
  Answer(false, absl::OkStatus());
  const auto ends = All<model::DeleteNodeRequest>(Step(demand));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].finalizers, std::vector<std::string>{model::kMachineFinalizer});
}

// ---- prices

TEST_F(HookTest, NodeOfUnknownPriceIsNeverCountedAsFree) {
  options_.cost_limit_micro_usd_per_hour = 2 * kDollar;
  Restart();
  NodeUse node = Arrived("ip-10-0-0-1", "fl-77");
  node.instance_type = "left.the.catalogue";
  node.needed = true;
  nodes_["ip-10-0-0-1"] = node;
  StepAndApply();
  now_ += absl::Minutes(1);
  StepAndApply();
  ASSERT_EQ(requests_.size(), 1u) << "found by its label, whatever its name";
  EXPECT_FALSE(The().price_known);
  const StepOutput out = Step({Item("team/a", Spec(1000, 4, 1), 1)});
  EXPECT_EQ(out.outcomes[0].code, verdict::Code::kCostCapReached);
  std::string details;
  for (const std::string& detail : out.outcomes[0].details) details += detail + "; ";
  EXPECT_NE(details.find("nodes of unknown price: 1, each counted as $2.00"), std::string::npos)
      << details;
}

}  // namespace
}  // namespace fairlead::hook
