// How nodes are given back, and which are not.

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::HookTest;
using testing::kStart;

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

TEST_F(HookTest, VanishedDemandCancelsTheOrder) {
  Buy();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  EXPECT_EQ(The().unneeded_since, now_);
  now_ += options_.cancel_after;
  const StepOutput out = StepAndApply();
  EXPECT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_EQ(out.withdrawn.size(), 1u);
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
  // And one in the middle of its removal goes on being removed.
  LeaveUnneeded();
  ASSERT_TRUE(node.removal_tainted);
  Restart();
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
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
  Buy();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.cancel_after;
  ASSERT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
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
  now_ += absl::Seconds(30);  // gone for a minute: somebody deleted the node
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kDraining);
}

TEST_F(HookTest, NodesOfOthersAreNeverTouched) {
  nodes_["static-1"] = Arrived("static-1", "");
  nodes_["orphan"] = Arrived("orphan", "orphan");
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
  ASSERT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
  now_ += absl::Milliseconds(300);
  Answer(false, absl::InternalError("later"));  // asked again 30 s after this answer
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
  ASSERT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
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
  // And from here on it is given back as any other.
  node.needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  EXPECT_EQ(All<model::SetNodeTaint>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, NodeOfUnknownTypeWhoseRequestIsGoneIsRemovedOnceNothingNeedsIt) {
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  node.instance_type = "left.the.catalogue";
  node.ready = false;  // nobody knows what it promised
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

}  // namespace
}  // namespace fairlead::hook
