// From demand to a node that is ready, and the failures on the way.
#include "autoscale-hook/hook.h"

#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/announced.h"
#include "autoscale-hook/planner/caps.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kStart;
using testing::Spec;
using testing::Type;
using verdict::Code;

TEST_F(HookTest, FromDemandToReadyAndBackToZero) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  StepOutput out = Step(demand);
  ASSERT_EQ(out.outcomes.size(), 1u);
  EXPECT_EQ(out.outcomes[0].code, Code::kNodesRequested);
  EXPECT_EQ(out.outcomes[0].expected_at, now_ + options_.expected_boot);
  ASSERT_EQ(out.created.size(), 1u);
  const model::NodeRequest& request = out.created[0].request;
  EXPECT_EQ(out.outcomes[0].node_requests, std::vector<std::string>{request.meta.name});
  EXPECT_EQ(request.instance_type, "g.1");
  EXPECT_EQ(request.queue, "q");
  EXPECT_EQ(request.reason_workloads, std::vector<std::string>{"team/a"});
  EXPECT_EQ(out.created[0].node.meta.name, request.meta.name);
  EXPECT_TRUE(All<model::LaunchNode>(out).empty())
      << "the provider is told after the object exists";
  Apply(out);

  out = StepAndApply();
  ASSERT_EQ(All<model::LaunchNode>(out).size(), 1u);
  EXPECT_TRUE(StepAndApply().actions.empty()) << "told once";
  now_ += absl::Seconds(5);
  Answer(true, absl::OkStatus());
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kLaunched);
  EXPECT_EQ(The().launched_at, now_);
  NodeUse& node = nodes_.at(TheName());
  node.registered = true;
  node.uid = "u";
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kRegistered);
  node.ready = true;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_TRUE(StepAndApply().actions.empty());

  node.needed = false;
  out = StepAndApply();
  EXPECT_EQ(The().unneeded_since, now_);
  EXPECT_LE(out.wake_at, now_ + options_.unneeded_after);
  now_ += options_.unneeded_after - absl::Seconds(1);
  EXPECT_TRUE(StepAndApply().actions.empty());
  now_ += absl::Seconds(1);
  out = StepAndApply();
  EXPECT_EQ(All<model::SetNodeTaint>(out).size(), 1u);
  EXPECT_TRUE(All<model::TerminateNode>(out).empty()) << "only after the taint is seen";
  out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_TRUE(All<model::TerminateNode>(out).empty()) << "only after Draining is written";
  out = StepAndApply();
  ASSERT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_TRUE(StepAndApply().actions.empty());
  Answer(false, absl::OkStatus());
  EXPECT_TRUE(All<model::DeleteNodeRequest>(StepAndApply()).empty()) << "the node is still there";
  now_ += absl::Minutes(1);
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u) << "it outlived its removal";
  nodes_.clear();
  Answer(false, absl::NotFoundError("no such machine"));
  StepAndApply();
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(StepAndApply().wake_at, absl::InfiniteFuture());
}

TEST_F(HookTest, LostCreateReplyMeansTheSameNameAgain) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  const StepOutput first = Step(demand);
  Restart();
  const StepOutput second = Step(demand);
  ASSERT_EQ(second.created.size(), 1u);
  EXPECT_EQ(second.created[0].request.meta.name, first.created[0].request.meta.name);
}

TEST_F(HookTest, SecondPurchaseForTheSameWorkloadHasAnotherName) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  StepAndApply(demand);
  StepAndApply(demand);
  EXPECT_EQ(requests_.size(), 2u);
}

// A creation counts against the caps as long as it may have been carried out.
class CreationTest : public HookTest {
 protected:
  CreationTest() {
    options_.cluster_gpu_limit = 1;
    Restart();
    name_ = Step(demand_).created.at(0).request.meta.name;
  }
  void Answer(const absl::Status& status) { hook_->OnCreateResult(name_, status, now_); }
  // An ordered node of its name, as the engine has it.
  void Needed(bool needed) {
    NodeUse use;
    use.name = use.node_request = name_;
    use.needed = needed;
    nodes_[name_] = use;
  }
  void ExpectCounted() {
    const StepOutput out = Step(demand_);
    EXPECT_EQ(out.outcomes[0].code, Code::kGpuCapReached);
    EXPECT_TRUE(out.withdrawn.empty());
  }
  void ExpectForgotten() {
    const StepOutput out = Step(demand_);
    EXPECT_EQ(out.outcomes[0].code, Code::kNodesRequested);
    EXPECT_EQ(out.withdrawn, std::vector<std::string>{name_});
  }

  const Demand demand_ = {Item("team/a", Spec(1000, 4, 1), 1)};
  std::string name_;
};

TEST_F(CreationTest, RefusedForCertainIsForgotten) {
  ExpectCounted();
  Answer(absl::PermissionDeniedError("no"));
  ExpectForgotten();
}

TEST_F(CreationTest, RefusalAfterAnUnknownOutcomeIsBelievedWhenTheWatchWouldShowTheObject) {
  Answer(absl::UnavailableError("connection reset"));
  now_ += absl::Seconds(5);
  EXPECT_EQ(All<model::CreateNodeRequest>(Step(demand_)).size(), 1u) << "repeated";
  Answer(absl::PermissionDeniedError("no"));
  ExpectCounted();
  now_ += kDoubtLasts;
  const auto again = All<model::CreateNodeRequest>(Step(demand_));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].request->meta.name, name_);
  Answer(absl::PermissionDeniedError("no"));
  ExpectForgotten();
}

TEST_F(CreationTest, UnansweredCountsForAsLongAsItTakes) {
  Needed(false);
  for (int i = 0; i < 100; ++i) {
    ExpectCounted();
    now_ += options_.launch_timeout;
  }
  Answer(absl::UnavailableError("given up"));
  ExpectCounted();
  now_ += kDoubtLasts;
  ExpectForgotten();
}

TEST_F(CreationTest, NeededNodeIsAskedForUntilItIsThere) {
  Needed(true);
  Answer(absl::OkStatus());
  EXPECT_TRUE(Step(demand_).actions.empty());
  now_ += kDoubtLasts;
  EXPECT_EQ(All<model::CreateNodeRequest>(Step(demand_)).size(), 1u) << "it is gone again";
  Answer(absl::AlreadyExistsError("of an earlier attempt"));
  ExpectCounted();
}

TEST_F(CreationTest, UnneededOneInDoubtIsNotRepeated) {
  Needed(false);
  Answer(absl::DeadlineExceededError("no answer"));
  for (; now_ < kStart + kDoubtLasts; now_ += absl::Seconds(5)) {
    const StepOutput out = Step(demand_);
    EXPECT_TRUE(out.actions.empty());
    EXPECT_EQ(out.wake_at, kStart + kDoubtLasts);
  }
  ExpectForgotten();
}

// The time for the launch begins when it may begin.
TEST_F(CreationTest, LateObjectHasItsWholeTime) {
  Needed(true);
  model::NodeRequest request = hook_->machines().Find(name_)->desired;
  now_ += 3 * options_.launch_timeout;
  request.meta.uid = "uid";
  request.meta.creation = now_;
  requests_[name_] = request;
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kPending);
}

TEST_F(HookTest, RefusalsByClass) {
  const Demand demand = {Item("team/b", Spec(1000, 4, 1), 1)};
  struct Case {
    FailureClass failure;
    std::string next;  // the type provisioned next; empty: none
  };
  const Case cases[] = {{FailureClass::kStockout, "h.1"},
                        {FailureClass::kQuota, "h.1"},
                        {FailureClass::kConfig, "h.1"},
                        {FailureClass::kAuth, ""},
                        {FailureClass::kOther, "h.1"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(FailureName(c.failure)));
    requests_.clear();
    nodes_.clear();
    Restart();
    Buy();
    Answer(true, FailureStatus(c.failure, "no"));
    StepOutput out = StepAndApply();
    EXPECT_EQ(ThePhase(), Phase::kFailed);
    EXPECT_EQ(The().failure, FailureName(c.failure));
    EXPECT_EQ(out.withdrawn, std::vector<std::string>{TheName()});
    EXPECT_EQ(All<model::EmitEvent>(out).size(), 1u);
    out = Step(demand);
    EXPECT_EQ(All<model::TerminateNode>(out).size(), 1u) << "made sure of";
    if (c.next.empty()) {
      EXPECT_TRUE(out.created.empty());
      EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
    } else {
      ASSERT_EQ(out.created.size(), 1u);
      EXPECT_EQ(out.created[0].request.instance_type, c.next);
    }
    Answer(false, absl::OkStatus());
    StepAndApply();
    EXPECT_TRUE(requests_.empty());
  }
}

TEST_F(HookTest, BackOffEndsAndWakesTheHook) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
  Restart();
  Buy();
  Answer(true, FailureStatus(FailureClass::kStockout, "no"));
  StepAndApply();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  StepOutput out = Step(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
  EXPECT_LE(out.wake_at, now_ + options_.backoff_initial);
  now_ += options_.backoff_initial;
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kNodesRequested);
}

TEST_F(HookTest, BackOffIsRebuiltFromFailedRequests) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
  Restart();
  Buy();
  Answer(true, FailureStatus(FailureClass::kStockout, "no"));
  StepAndApply();
  Restart();
  EXPECT_TRUE(Step({Item("team/a", Spec(1000, 4, 1), 1)}).created.empty());
}

TEST_F(HookTest, UnknownLaunchOutcomeIsAskedAgainWithTheSameName) {
  Buy();
  Answer(true, absl::UnavailableError("connection reset"));
  EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
  EXPECT_EQ(ThePhase(), Phase::kPending);
  now_ += absl::Seconds(30);
  const auto again = All<model::LaunchNode>(StepAndApply());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].request->meta.name, TheName());
}

// The first attempt may have launched a machine.
TEST_F(HookTest, LaunchRefusedAfterAnUnknownOutcomeCountsUntilItsEndIsConfirmed) {
  options_.cluster_gpu_limit = 1;
  Restart();
  Buy();
  Answer(true, absl::UnavailableError("connection reset"));
  StepAndApply();
  now_ += absl::Seconds(30);
  StepAndApply();
  Answer(true, FailureStatus(FailureClass::kStockout, "no"));
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kGpuCapReached);
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(Step(demand).created.at(0).request.instance_type, "h.1") << "g.1 is out of stock";
}

// The former leader may have launched it.
TEST_F(HookTest, LaunchRefusedAfterARestartCountsUntilItsEndIsConfirmed) {
  options_.cluster_gpu_limit = 1;
  Restart();
  Buy();
  Restart();
  ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  Answer(true, FailureStatus(FailureClass::kStockout, "no"));
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kGpuCapReached);
}

TEST_F(HookTest, PendingIsLaunchedAgainAfterARestart) {
  Buy();
  Restart();
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  Answer(true, absl::AlreadyExistsError("there"));
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kLaunched);
}

TEST_F(HookTest, LaunchNeverAnswered) {
  Buy();
  now_ += options_.launch_timeout;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  EXPECT_EQ(The().failure, "Timeout");
}

// Our clock is ahead of the API server's by more than a launch may take.
TEST_F(HookTest, ClocksThatDifferDoNotShortenALaunch) {
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  The().meta.creation = now_ - options_.launch_timeout - absl::Minutes(1);
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kPending);
  now_ += options_.launch_timeout;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
}

TEST_F(HookTest, NodeThatNeverRegistersIsTerminatedAndCountsUntilThen) {
  options_.cluster_gpu_limit = 1;
  Restart();
  BuyLaunched();
  now_ += options_.ready_timeout;
  StepOutput out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  EXPECT_TRUE(All<model::TerminateNode>(out).empty()) << "written first";
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  out = Step(demand);
  EXPECT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_EQ(out.outcomes[0].code, Code::kGpuCapReached) << "whether it exists is unknown";
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_TRUE(requests_.empty());
  now_ += options_.backoff_max;
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kNodesRequested);
}

TEST_F(HookTest, LateArrivalIsAccepted) {
  BuyLaunched();
  now_ += options_.ready_timeout;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  NodeUse late = Arrived(TheName(), TheName());
  late.needed = true;
  nodes_[late.name] = late;
  const StepOutput out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().failure, "");
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
}

TEST_F(HookTest, LostStatusWriteIsRepeatedAndNotDecidedTwice) {
  Buy();
  Answer(true, absl::OkStatus());
  EXPECT_EQ(All<model::UpdateNodeRequestStatus>(Step()).size(), 1u);
  EXPECT_TRUE(Step().actions.empty());
  now_ += absl::Minutes(1);  // the answer was lost too
  const auto again = All<model::UpdateNodeRequestStatus>(StepAndApply());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].request->phase, Phase::kLaunched);
  EXPECT_EQ(again[0].request->launched_at, kStart);
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(HookTest, TypeThatLeftTheCatalogue) {
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  The().instance_type = "gone.1";
  EXPECT_TRUE(absl::IsNotFound(hook_->ExpectedNode(The()).status()));
  StepAndApply();
  EXPECT_EQ(The().failure, "Config");
}

// The caps have counted what was ordered.
TEST_F(HookTest, AnotherCatalogueDoesNotMakeAnOrderLarger) {
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  const Catalog larger = Catalog::FromTypes({Type("g.1", 4, 16, 3, kDollar)});
  Hook later(options_, &larger);
  EXPECT_EQ(model::Get(later.ExpectedNode(The())->allocatable, model::kGpuName), 1000);
  // A request of an older version.
  The().meta.annotations.Erase(kAnnouncedAnnotation);
  EXPECT_EQ(model::Get(later.ExpectedNode(The())->allocatable, model::kGpuName), 1000);
  The().meta.labels.Erase(kRequestGpusLabel);
  EXPECT_EQ(model::Get(later.ExpectedNode(The())->allocatable, model::kGpuName), 3000);
}

TEST_F(HookTest, PoolsGiveLabelsTaintsAndProvider) {
  model::NodePool pool;
  pool.meta.name = "gpu";
  pool.provider = "aws";
  pool.labels.Set("team", "ml");
  pool.startup_taints.push_back({"cni", "", model::TaintEffect::kNoSchedule});
  pools_ = {pool};
  StepOutput out = StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.provider, "aws");
  EXPECT_TRUE(out.created[0].node.taints.empty());
  const auto launch = All<model::LaunchNode>(StepAndApply());
  ASSERT_EQ(launch.size(), 1u);
  EXPECT_EQ(launch[0].node->taints.size(), 1u);
  EXPECT_EQ(launch[0].node->meta.labels.Get("team"), "ml");
  Hook fresh(options_, &catalog_);
  EXPECT_EQ(fresh.ExpectedNode(The(), {&pool})->meta.labels.Get("team"), "ml");
}

// Pools of one type each; the first is the cheaper one.
class PoolGoneTest : public HookTest {
 protected:
  PoolGoneTest() {
    pools_.resize(2);
    pools_[0].meta.name = "first";
    pools_[0].instance_types = {"g.1"};
    pools_[0].labels.Set("team", "ml");
    pools_[1].meta.name = "second";
    pools_[1].instance_types = {"h.1"};
  }
  // Before its machine is ordered the pool goes; the request fails, and is gone.
  void LoseThePool() {
    StepAndApply(demand_);
    ASSERT_EQ(The().pool, "first");
    lost_ = pools_.front();
    pools_.erase(pools_.begin());
    EXPECT_TRUE(All<model::LaunchNode>(StepAndApply()).empty());
    EXPECT_EQ(ThePhase(), Phase::kFailed);
    EXPECT_EQ(The().failure, FailureName(FailureClass::kConfig));
    EXPECT_EQ(The().message, "NodePool first is gone, or was never in force in this process");
    for (int i = 0; i < 3 && !requests_.empty(); ++i) {
      StepAndApply();
      Answer(false, absl::OkStatus());
    }
    ASSERT_TRUE(requests_.empty());
  }
  const Demand demand_ = {Item("team/a", Spec(1000, 4, 1), 1)};
  model::NodePool lost_;
};

TEST_F(PoolGoneTest, NothingIsLaunchedForItAndAnotherOneServes) {
  LoseThePool();
  StepAndApply(demand_);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(The().pool, "second");
}

TEST_F(PoolGoneTest, MadeAgainItBeginsWithoutBackoff) {
  LoseThePool();
  StepAndApply();
  pools_.insert(pools_.begin(), lost_);
  StepAndApply(demand_);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(The().pool, "first");
}

TEST_F(PoolGoneTest, WhatIsOrderedStays) {
  Buy();
  pools_.erase(pools_.begin());
  Answer(true, absl::OkStatus());
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kLaunched);
}

TEST_F(HookTest, DisabledHookDoesNothing) {
  BuyReady();
  options_.enabled = false;
  Restart();
  nodes_.at(TheName()).needed = false;
  now_ += absl::Hours(9);
  const StepOutput out = Step({Item("team/b", Spec(1000, 4, 1), 1)});
  EXPECT_TRUE(out.actions.empty());
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
}

TEST_F(HookTest, RefusedCreationsAreNotAskedForInALoop) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  int asked = 0;
  for (int i = 0; i < 50; ++i) {
    const StepOutput out = Step(demand);
    for (const auto& create : All<model::CreateNodeRequest>(out)) {
      ++asked;
      hook_->OnCreateResult(create.request->meta.name, absl::PermissionDeniedError("no"), now_);
    }
    if (i < 49) continue;
    EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
    EXPECT_GT(out.wake_at, now_);
    EXPECT_LE(out.wake_at, now_ + options_.backoff_initial);
  }
  EXPECT_EQ(asked, 2) << "each of the two types once";
}

}  // namespace
}  // namespace fairlead::hook
