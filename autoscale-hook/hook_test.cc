#include "autoscale-hook/hook.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/failure.h"
#include "autoscale-hook/hook_testing.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::ArithmeticPlacement;
using testing::Item;
using testing::kDollar;
using testing::Spec;
using testing::Type;
using verdict::Code;

const absl::Time kStart = absl::FromUnixSeconds(1800000000);

// The API server's objects and the engine's knowledge, moved by hand.
class HookTest : public ::testing::Test {
 protected:
  HookTest() { Restart(); }
  void Restart() { hook_ = std::make_unique<Hook>(options_, &catalog_); }

  StepOutput Step(const Demand& demand = {}) {
    StepInput input;
    input.now = now_;
    input.demand = &demand;
    for (const auto& [name, request] : requests_) input.requests.push_back(&request);
    for (const model::NodePool& pool : pools_) input.pools.push_back(&pool);
    std::vector<NodeUse> uses;
    for (const auto& [name, node] : nodes_) uses.push_back(node);
    input.nodes = &uses;
    return hook_->Step(input, placement_);
  }
  // What the API server makes of the actions; ordered nodes become known to the engine.
  void Apply(const StepOutput& out) {
    for (const model::Action& action : out.actions) {
      if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
        model::NodeRequest request = create->request;
        request.meta.uid = absl::StrCat("uid-", ++uids_);
        request.meta.creation = now_;
        EXPECT_TRUE(requests_.emplace(request.meta.name, request).second) << "name taken";
      } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
        requests_.at(update->request.meta.name) = update->request;
      } else if (const auto* remove = std::get_if<model::DeleteNodeRequest>(&action.what)) {
        EXPECT_EQ(requests_.at(remove->name).meta.uid, remove->uid);
        requests_.erase(remove->name);
        nodes_.erase(remove->name);
      } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
        EXPECT_EQ(taint->taint.key, model::kRemovalTaint);
        EXPECT_EQ(taint->taint.effect, model::TaintEffect::kNoSchedule);
        nodes_.at(taint->node).removal_tainted = taint->present;
      }
    }
    for (const std::string& name : out.withdrawn) {
      auto it = nodes_.find(name);
      if (it != nodes_.end() && !it->second.registered) nodes_.erase(it);
    }
    for (const StepOutput::NewNode& created : out.created) {
      NodeUse use;
      use.name = use.node_request = created.request.meta.name;
      use.needed = true;
      nodes_[use.name] = use;
    }
  }
  StepOutput StepAndApply(const Demand& demand = {}) {
    StepOutput out = Step(demand);
    Apply(out);
    return out;
  }
  template <typename T>
  static std::vector<T> All(const StepOutput& out) {
    std::vector<T> all;
    for (const model::Action& action : out.actions) {
      if (const T* what = std::get_if<T>(&action.what)) all.push_back(*what);
    }
    return all;
  }
  std::string TheName() const { return requests_.size() == 1 ? requests_.begin()->first : "?"; }
  model::NodeRequest& The() { return requests_.begin()->second; }
  Phase ThePhase() { return The().phase; }
  void Answer(bool launch, const absl::Status& status) {
    hook_->OnProviderResult(TheName(), launch, status, now_);
  }
  // One node bought and asked for at the provider.
  void Buy() {
    StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
    ASSERT_EQ(requests_.size(), 1u);
    ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  }
  void BuyReady() {
    Buy();
    Answer(true, absl::OkStatus());
    StepAndApply();
    nodes_.at(TheName()).registered = true;
    nodes_.at(TheName()).uid = "node-uid";
    nodes_.at(TheName()).ready = true;
    StepAndApply();
    ASSERT_EQ(ThePhase(), Phase::kReady);
  }

  Catalog catalog_ =
      Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar), Type("h.1", 4, 16, 1, 2 * kDollar)});
  HookOptions options_;
  std::unique_ptr<Hook> hook_;
  ArithmeticPlacement placement_;
  absl::Time now_ = kStart;
  std::map<std::string, model::NodeRequest> requests_;
  std::map<std::string, NodeUse> nodes_;
  std::vector<model::NodePool> pools_;
  int uids_ = 0;
};

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
  ASSERT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kDraining);
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

TEST_F(HookTest, CreateRefusedForCertainIsForgotten) {
  options_.cluster_gpu_limit = 1;
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  StepOutput out = Step(demand);
  const std::string name = out.created.at(0).request.meta.name;
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kGpuCapReached) << "in flight counts";
  hook_->OnCreateResult(name, absl::UnavailableError("nobody knows"), now_);
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kGpuCapReached);
  hook_->OnCreateResult(name, absl::PermissionDeniedError("no"), now_);
  out = Step(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kNodesRequested);
  EXPECT_EQ(out.withdrawn, std::vector<std::string>{name});
}

TEST_F(HookTest, UnansweredCreateIsGivenUpAndWithdrawn) {
  Step({Item("team/a", Spec(1000, 4, 1), 1)});
  now_ += options_.launch_timeout;
  EXPECT_EQ(Step().withdrawn.size(), 1u);
}

TEST_F(HookTest, RefusalsByClass) {
  const Demand demand = {Item("team/b", Spec(1000, 4, 1), 1)};
  struct Case {
    FailureClass failure;
    std::string next;  // type bought next; empty: none
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
  EXPECT_EQ(again[0].request.meta.name, TheName());
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

TEST_F(HookTest, NodeThatNeverRegistersIsTerminatedAndCountsUntilThen) {
  options_.cluster_gpu_limit = 1;
  Restart();
  Buy();
  Answer(true, absl::OkStatus());
  StepAndApply();
  now_ += options_.ready_timeout;
  StepOutput out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  EXPECT_TRUE(All<model::TerminateNode>(out).empty()) << "written first";
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  out = Step(demand);
  EXPECT_EQ(All<model::TerminateNode>(out).size(), 1u);
  EXPECT_EQ(out.outcomes[0].code, Code::kGpuCapReached) << "nobody knows whether it exists";
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_TRUE(requests_.empty());
  now_ += options_.backoff_max;
  EXPECT_EQ(Step(demand).outcomes[0].code, Code::kNodesRequested);
}

TEST_F(HookTest, LateArrivalIsAccepted) {
  Buy();
  Answer(true, absl::OkStatus());
  StepAndApply();
  now_ += options_.ready_timeout;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  NodeUse late;
  late.name = late.node_request = TheName();
  late.registered = late.ready = late.needed = true;
  nodes_[late.name] = late;
  const StepOutput out = StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().failure, "");
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
}

TEST_F(HookTest, RegisteredButNeverUsableIsRemovedOnlyBehindItsTaint) {
  Buy();
  Answer(true, absl::OkStatus());
  StepAndApply();
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
  node.needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
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
  node.needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
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
  NodeUse late;
  late.name = late.node_request = TheName();
  late.registered = late.ready = true;
  nodes_[late.name] = late;
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
  NodeUse foreign;
  foreign.name = "static-1";
  foreign.registered = foreign.ready = true;
  nodes_["static-1"] = foreign;
  foreign.name = foreign.node_request = "orphan";
  nodes_["orphan"] = foreign;
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
    NodeUse node;
    node.name = node.node_request = request.meta.name;
    node.registered = node.ready = true;
    nodes_[node.name] = node;
  }
  const auto taints = All<model::SetNodeTaint>(StepAndApply());
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(taints[0].node, "r1");
}

TEST_F(HookTest, LostStatusWriteIsRepeatedAndNotDecidedTwice) {
  Buy();
  Answer(true, absl::OkStatus());
  EXPECT_EQ(All<model::UpdateNodeRequestStatus>(Step()).size(), 1u);
  EXPECT_TRUE(Step().actions.empty());
  now_ += absl::Seconds(10);
  const auto again = All<model::UpdateNodeRequestStatus>(StepAndApply());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].request.phase, Phase::kLaunched);
  EXPECT_EQ(again[0].request.launched_at, kStart);
  EXPECT_TRUE(StepAndApply().actions.empty());
}

TEST_F(HookTest, TypeThatLeftTheCatalogue) {
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  The().instance_type = "gone.1";
  EXPECT_TRUE(absl::IsNotFound(hook_->ExpectedNode(The()).status()));
  StepAndApply();
  EXPECT_EQ(The().failure, "Config");
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
  EXPECT_EQ(launch[0].node.taints.size(), 1u);
  EXPECT_EQ(launch[0].node.meta.labels.Get("team"), "ml");
  Hook fresh(options_, &catalog_);
  EXPECT_EQ(fresh.ExpectedNode(The(), {&pool})->meta.labels.Get("team"), "ml");
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

TEST_F(HookTest, DeletedRequestIsGivenBackAtOnceUnlessNeeded) {
  BuyReady();
  The().meta.deletion = now_;
  EXPECT_TRUE(StepAndApply().actions.empty());
  nodes_.at(TheName()).needed = false;
  EXPECT_EQ(All<model::SetNodeTaint>(StepAndApply()).size(), 1u);
}

TEST_F(HookTest, WakesAtWholeSecondsSoThatItsTimerIsDueThen) {
  BuyReady();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
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
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
  ASSERT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
  Answer(false, absl::OkStatus());
  StepAndApply();  // the watch still shows the node
  now_ += absl::Seconds(2);
  nodes_.clear();
  const StepOutput out = StepAndApply();
  EXPECT_TRUE(All<model::TerminateNode>(out).empty());
  EXPECT_EQ(All<model::DeleteNodeRequest>(out).size(), 1u) << "both are known: nothing to wait for";
}

TEST_F(HookTest, RefusedCreationsAreNotAskedForInALoop) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  int asked = 0;
  for (int i = 0; i < 50; ++i) {
    const StepOutput out = Step(demand);
    for (const auto& create : All<model::CreateNodeRequest>(out)) {
      ++asked;
      hook_->OnCreateResult(create.request.meta.name, absl::PermissionDeniedError("no"), now_);
    }
    if (i < 49) continue;
    EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
    EXPECT_GT(out.wake_at, now_);
    EXPECT_LE(out.wake_at, now_ + options_.backoff_initial);
  }
  EXPECT_EQ(asked, 2) << "each of the two types once";
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
