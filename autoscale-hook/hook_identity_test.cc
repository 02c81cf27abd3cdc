// A request is its object's uid, a machine its provider id: what a name alone would mix up.
#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/announced.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using ::testing::ElementsAre;
using testing::HookTest;
using ::testing::IsEmpty;
using testing::Item;
using testing::kDollar;
using testing::Spec;
using testing::Type;
using ::testing::UnorderedElementsAre;
using verdict::Code;

class IdentityTest : public HookTest {
 protected:
  // The object goes although its finalizer is on it.
  void DeleteByForce() {
    former_ = The();
    requests_.clear();
    const auto node = nodes_.find(former_.meta.name);
    if (node != nodes_.end() && !node->second.registered) nodes_.erase(node);
  }
  // The same name again, without a status: another object.
  void MakeAgain() {
    model::NodeRequest request;
    request.meta.name = former_.meta.name;
    request.meta.labels = former_.meta.labels;
    request.meta.uid = absl::StrCat("uid-", ++uids_);
    request.meta.creation = now_;
    request.provider = former_.provider;
    request.instance_type = former_.instance_type;
    request.zone = former_.zone;
    request.price_micro_usd_per_hour = former_.price_micro_usd_per_hour;
    request.finalizers = former_.finalizers;
    requests_[request.meta.name] = request;
    NodeUse use;
    use.name = use.node_request = request.meta.name;
    use.needed = true;
    nodes_.try_emplace(use.name, use);
  }
  void LimitGpus(int64_t gpus) {
    options_.cluster_gpu_limit = gpus;
    Restart();
  }
  Code Outcome() { return Step(demand_).outcomes.at(0).code; }
  static std::vector<std::string> UidsOf(const StepOutput& out) {
    std::vector<std::string> uids;
    for (const ProviderCall& end : out.ends) uids.push_back(end.request_uid);
    return uids;
  }

  const Demand demand_ = {Item("team/b", Spec(1000, 4, 1), 1)};
  model::NodeRequest former_;
};

TEST_F(IdentityTest, MachineOfADeletedObjectCountsAndIsEndedUntilThatIsConfirmed) {
  LimitGpus(1);
  BuyLaunched();
  DeleteByForce();
  const StepOutput out = Step(demand_);
  EXPECT_EQ(out.outcomes.at(0).code, Code::kGpuCapReached);
  EXPECT_THAT(UidsOf(out), ElementsAre(former_.meta.uid));
  EXPECT_EQ(All<model::EmitEvent>(out).size(), 1u);
  Answer(false, absl::UnavailableError("no answer"));
  EXPECT_EQ(Outcome(), Code::kGpuCapReached);
  now_ += absl::Seconds(30);
  EXPECT_THAT(UidsOf(Step(demand_)), ElementsAre(former_.meta.uid)) << "asked again";
  EXPECT_EQ(Outcome(), Code::kGpuCapReached);
  Answer(false, absl::OkStatus());
  EXPECT_EQ(Outcome(), Code::kNodesRequested);
}

TEST_F(IdentityTest, ObjectMadeAgainLaunchesNothingBeforeTheEndOfTheFormerMachine) {
  LimitGpus(2);
  BuyLaunched();
  DeleteByForce();
  MakeAgain();
  for (int i = 0; i < 3; ++i, now_ += absl::Seconds(5)) {
    const StepOutput out = StepAndApply(demand_);
    EXPECT_THAT(All<model::LaunchNode>(out), IsEmpty());
    EXPECT_EQ(out.outcomes.at(0).code, Code::kGpuCapReached) << "both count";
    if (i == 0) {
      EXPECT_THAT(UidsOf(out), ElementsAre(former_.meta.uid));
    }
  }
  Answer(false, absl::OkStatus());
  const StepOutput out = StepAndApply();
  const auto launched = All<model::LaunchNode>(out);
  ASSERT_EQ(launched.size(), 1u);
  EXPECT_EQ(launched[0].request->meta.uid, The().meta.uid);
  EXPECT_EQ(ThePhase(), Phase::kPending);
}

// Both objects are seen in one list: the end of the former one was never told.
TEST_F(IdentityTest, ObjectMadeAgainBetweenTwoListsIsAnotherRow) {
  BuyLaunched();
  const std::string name = TheName();
  DeleteByForce();
  MakeAgain();
  shown_.clear();
  EXPECT_THAT(UidsOf(StepAndApply()), ElementsAre(former_.meta.uid));
  EXPECT_EQ(hook_->machines().Find(name)->uid(), The().meta.uid);
  EXPECT_EQ(hook_->machines().rows().size(), 2u);
}

TEST_F(IdentityTest, LateAnswersForAFormerObjectChangeNothingOfItsSuccessor) {
  Buy();
  DeleteByForce();
  MakeAgain();
  StepAndApply();
  // The launch was accepted after all, and the machine's id is known by that.
  hook_->OnProviderResult({former_.meta.name, former_.meta.uid, "", true}, absl::OkStatus(), now_,
                          "cloud://1");
  const Machine& row = *hook_->machines().Find(TheName());
  EXPECT_FALSE(row.launch_answer.has_value());
  EXPECT_THAT(row.provider_ids, IsEmpty());
  now_ += kListPause;  // the list of nodes is searched for the id, too
  EXPECT_THAT(All<model::LaunchNode>(StepAndApply()), IsEmpty());
  EXPECT_EQ(ThePhase(), Phase::kPending);
  EXPECT_EQ(asked_.back().provider_id, "cloud://1") << "ended by its id";
  // A status of the former object is no status of this one.
  model::NodeRequest written = former_;
  written.phase = Phase::kFailed;
  EXPECT_FALSE(hook_->OnStatusResult(written, absl::OkStatus(), now_));
  // The successor is to end, too; the answers are about the former one.
  The().meta.deletion = now_;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kDraining);
  StepAndApply();
  std::erase_if(asked_, [&](const auto& end) { return end.request_uid != former_.meta.uid; });
  ASSERT_FALSE(asked_.empty());
  Answer(false, absl::OkStatus());
  hook_->OnDeleteResult(TheName(), former_.meta.uid, absl::OkStatus(), now_);
  EXPECT_THAT(All<model::DeleteNodeRequest>(StepAndApply()), IsEmpty());
  EXPECT_FALSE(hook_->machines().HasLost(TheName()));
}

TEST_F(IdentityTest, RegisteredNodeOfAFormerObjectIsTakenOver) {
  LimitGpus(2);
  BuyReady();
  NodeUse& node = nodes_.at(TheName());
  node.provider_id = "cloud://1";
  StepAndApply();
  StepAndApply();
  DeleteByForce();
  MakeAgain();
  for (int i = 0; i < 3; ++i) {
    const StepOutput out = StepAndApply();
    EXPECT_THAT(All<model::LaunchNode>(out), IsEmpty());
    EXPECT_THAT(All<model::TerminateNode>(out), IsEmpty()) << "a pod is on it";
  }
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().provider_id, "cloud://1");
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
  EXPECT_EQ(Outcome(), Code::kNodesRequested) << "it counts once";
  // Not ready any more, and taken over: it is not launched by another uid.
  node.needed = false;
  LeaveUnneeded();
  const auto ends = All<model::TerminateNode>(StepTwice());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].provider_id, "cloud://1");
}

TEST_F(IdentityTest, TakenOverNodeThatBootsIsNotLaunchedAgain) {
  BuyLaunched();
  NodeUse& node = nodes_.at(TheName());
  node.registered = true;
  node.uid = "node-uid";
  node.provider_id = "cloud://1";
  StepAndApply();
  DeleteByForce();
  MakeAgain();
  EXPECT_THAT(All<model::LaunchNode>(StepAndApply()), IsEmpty());
  Restart();
  EXPECT_THAT(All<model::LaunchNode>(StepAndApply()), IsEmpty());
  EXPECT_EQ(ThePhase(), Phase::kRegistered);
}

// A pod may be on a node that registers while its machine's end is refused.
TEST_F(IdentityTest, LostMachineWhoseNodeRegistersGetsItsObjectBackAndNoEnd) {
  BuyLaunched();
  DeleteByForce();
  ASSERT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
  Answer(false, absl::PermissionDeniedError("no"));
  NodeUse node = Arrived(former_.meta.name, former_.meta.name);
  node.uid = "node-uid";
  node.needed = true;
  nodes_[node.name] = node;
  for (int i = 0; i < 30; ++i, now_ += absl::Seconds(10)) {
    EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
  }
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(The().price_micro_usd_per_hour, former_.price_micro_usd_per_hour);
  EXPECT_EQ(The().reason_workloads, former_.reason_workloads);
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
}

TEST_F(IdentityTest, ObjectThatComesBackWithItsStatusHasItsMachine) {
  BuyReady();
  nodes_.at(TheName()).provider_id = "cloud://1";
  StepAndApply();
  StepAndApply();
  DeleteByForce();
  nodes_.erase(former_.meta.name);  // the node is being registered again
  StepAndApply();
  MakeAgain();
  The().phase = Phase::kReady;
  The().provider_id = "cloud://1";
  The().registered_at = The().ready_at = now_;
  for (int i = 0; i < 5; ++i, now_ += absl::Seconds(10)) {
    EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
  }
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
}

TEST_F(IdentityTest, ReloadKeepsLostMachines) {
  LimitGpus(1);
  BuyLaunched();
  DeleteByForce();
  Step();
  auto next = std::make_unique<Hook>(options_, &catalog_);
  next->Continue(*hook_);
  hook_ = std::move(next);
  shown_.clear();
  EXPECT_EQ(Outcome(), Code::kGpuCapReached);
  now_ += absl::Minutes(1);
  EXPECT_THAT(UidsOf(Step()), ElementsAre(former_.meta.uid)) << "the answer will not come";
}

TEST_F(IdentityTest, NodeThatGoesWithItsObjectMayComeBackForAWhile) {
  BuyReady();
  DeleteByForce();
  nodes_.clear();
  EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
  now_ += absl::Minutes(1);
  EXPECT_THAT(UidsOf(StepAndApply()), ElementsAre(former_.meta.uid));
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_THAT(hook_->machines().rows(), IsEmpty());
  EXPECT_EQ(StepAndApply().wake_at, absl::InfiniteFuture());
}

// Another leader ended the machine before the object went, and nothing here could know it.
TEST_F(IdentityTest, ReplicaThatFollowsForgetsWhatAnotherLeaderEnded) {
  for (const Phase phase : {Phase::kDraining, Phase::kFailed, Phase::kReady}) {
    model::NodeRequest request;
    request.meta.name = "fl-1";
    request.meta.uid = "u";
    request.provider = "kwok";
    request.phase = phase;
    hook_->Observe(request);
    EXPECT_TRUE(hook_->ObserveGone("fl-1", "u"));
  }
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
  EXPECT_THAT(UidsOf(StepAndApply()), ElementsAre("u"));
  options_.enabled = false;
  Restart();
  model::NodeRequest request;
  request.meta.name = "fl-1";
  request.meta.uid = "u";
  hook_->Observe(request);
  hook_->ObserveGone("fl-1", "u");
  EXPECT_THAT(hook_->machines().rows(), IsEmpty()) << "without a hook nothing would end it";
}

TEST_F(IdentityTest, ObjectEndedAsEverLeavesNoRow) {
  BuyReady();
  LeaveUnneeded();
  StepTwice();
  Answer(false, absl::OkStatus());
  nodes_.clear();
  EXPECT_EQ(All<model::DeleteNodeRequest>(StepAndApply()).size(), 1u);
  EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
  EXPECT_THAT(hook_->machines().rows(), IsEmpty());
}

// The machine may come after its end, with the label of its request: that is no node of another
// one.
TEST_F(IdentityTest, NameOfAnEndedRequestIsNotUsedAgain) {
  BuyReady();
  const std::string former = TheName();
  Restart();  // it counts its purchases from the start
  LeaveUnneeded();
  StepTwice();
  Answer(false, absl::OkStatus());
  nodes_.clear();
  StepAndApply();
  StepAndApply();
  ASSERT_THAT(hook_->machines().rows(), IsEmpty());
  now_ += absl::Minutes(10);
  const auto created = All<model::CreateNodeRequest>(Step(demand_));
  ASSERT_EQ(created.size(), 1u);
  EXPECT_NE(created[0].request->meta.name, former);
}

TEST_F(IdentityTest, ProviderIdComesBeforeTheLabel) {
  model::NodeRequest request;
  for (const char* name : {"fl-a", "fl-b"}) {
    request.meta.name = name;
    request.meta.uid = absl::StrCat("uid-", name);
    request.provider_id = absl::StrCat("cloud://", name);
    hook_->Observe(request);
  }
  const MachineLedger& ledger = hook_->machines();
  EXPECT_EQ(ledger.FindByNode("fl-a", "cloud://fl-b")->name(), "fl-b");
  EXPECT_EQ(ledger.FindByNode("fl-a", "cloud://other")->name(), "fl-a");
  EXPECT_EQ(ledger.FindByNode("", "cloud://other"), nullptr);
  // An id that two requests name leads to the first: nothing of the other ends it.
  request.meta.name = "fl-c";
  request.meta.uid = "uid-fl-c";
  request.provider_id = "cloud://fl-a";
  hook_->Observe(request);
  EXPECT_EQ(ledger.FindByProviderId("cloud://fl-a"), "fl-a");
}

// ---- two machines of one request

using TwoMachinesTest = IdentityTest;

TEST_F(TwoMachinesTest, EachCountsAgainstTheCapsUntilItsEndIsConfirmed) {
  LimitGpus(2);
  BuyTwo();
  EXPECT_EQ(Outcome(), Code::kGpuCapReached);
  now_ += options_.unneeded_after;
  StepAndApply();
  StepAndApply();
  ASSERT_EQ(asked_.size(), 1u);
  nodes_.erase("ip-2");
  EXPECT_EQ(Outcome(), Code::kGpuCapReached) << "the node is gone, the machine not for certain";
  Answer(false, absl::OkStatus());
  StepAndApply();
  EXPECT_EQ(Outcome(), Code::kNodesRequested);
}

TEST_F(TwoMachinesTest, AnswerAboutOneMachineIsNoAnswerAboutTheOther) {
  BuyTwo();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
  StepTwice();
  ASSERT_EQ(asked_.size(), 2u);
  const std::vector<ProviderCall> asked = asked_;
  asked_ = {asked[1]};
  Answer(false, absl::OkStatus());
  nodes_.clear();
  EXPECT_THAT(All<model::DeleteNodeRequest>(StepAndApply()), IsEmpty());
  asked_ = {asked[0]};
  Answer(false, absl::OkStatus());
  EXPECT_EQ(All<model::DeleteNodeRequest>(StepAndApply()).size(), 1u);
}

TEST_F(TwoMachinesTest, RefusedEndOfTheSurplusOneIsRepeatedWithGrowingPauses) {
  BuyTwo();
  int calls = 0;
  for (const absl::Time end = now_ + absl::Hours(3); now_ < end; now_ += absl::Seconds(10)) {
    calls += static_cast<int>(All<model::TerminateNode>(StepAndApply()).size());
    Answer(false, absl::PermissionDeniedError("no"));
  }
  EXPECT_GE(calls, 5);
  EXPECT_LE(calls, 15);
  EXPECT_EQ(ThePhase(), Phase::kReady);
}

TEST_F(TwoMachinesTest, TaintOfOneNodeIsAnsweredByItsUid) {
  BuyTwo();
  now_ += options_.unneeded_after;
  const StepOutput out = Step();
  ASSERT_EQ(All<model::SetNodeTaint>(out).size(), 1u);
  hook_->OnTaintResult("node-uid", true, absl::PermissionDeniedError("about another"), now_);
  hook_->OnTaintResult("uid-ip-2", true, absl::PermissionDeniedError("no"), now_);
  EXPECT_THAT(All<model::SetNodeTaint>(Step()), IsEmpty());
  now_ += absl::Seconds(5);
  EXPECT_EQ(All<model::SetNodeTaint>(Step()).size(), 1u) << "a refusal is repeated after 5 s";
}

// The provider told the id of another machine than the one that came.
TEST_F(TwoMachinesTest, MachineWithoutANodeIsEndedWhileAnotherServes) {
  BuyLaunched();
  Answer(true, absl::OkStatus(), "cloud://never");
  nodes_[TheName()] = Arrived(TheName(), TheName());
  NodeUse& node = nodes_.at(TheName());
  node.uid = "node-uid";
  node.provider_id = "cloud://1";
  node.needed = true;
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kReady);
  StepAndApply();
  now_ += options_.ready_timeout;
  const auto ends = All<model::TerminateNode>(StepAndApply());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].provider_id, "cloud://never");
  Answer(false, absl::NotFoundError("no such machine"));
  StepAndApply();
  EXPECT_THAT(hook_->machines().Find(TheName())->provider_ids, UnorderedElementsAre("cloud://1"));
}

// ---- a machine whose id is not known

TEST_F(IdentityTest, ProviderThatTellsTheIdInsteadOfEndingIsAskedByTheId) {
  BuyLaunched();
  nodes_.at(TheName()).needed = false;
  StepAndApply();
  now_ += options_.cancel_after;
  ASSERT_EQ(All<model::TerminateNode>(StepTwice()).size(), 1u);
  EXPECT_EQ(asked_.back().provider_id, "");
  Answer(false, absl::FailedPreconditionError("its nodes have no label"), "cloud://1");
  // Its node has come without our label, and runs a pod.
  nodes_.clear();
  NodeUse node = Arrived("ip-1", TheName());  // found by the id
  node.uid = "node-uid";
  node.provider_id = "cloud://1";
  node.needed = true;
  nodes_["ip-1"] = node;
  for (int i = 0; i < 20; ++i, now_ += absl::Seconds(10)) {
    EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
  }
  EXPECT_EQ(The().provider_id, "cloud://1");
  nodes_.at("ip-1").needed = false;
  const auto ends = All<model::TerminateNode>(StepAndApply());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].provider_id, "cloud://1");
}

TEST_F(IdentityTest, UnansweredLaunchIsRepeatedBecauseTheAnswerTellsTheId) {
  Buy();
  now_ += absl::Seconds(59);
  EXPECT_THAT(All<model::LaunchNode>(StepAndApply()), IsEmpty());
  now_ += absl::Seconds(1);
  EXPECT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  Answer(true, absl::OkStatus(), "cloud://1");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kLaunched);
  EXPECT_EQ(The().provider_id, "cloud://1");
}

// ---- what a request was made with

TEST_F(IdentityTest, AnnouncedResourcesAreThoseOfTheRequest) {
  InstanceType fast = Type("g.1", 4, 16, 1, kDollar);
  fast.extra = {{"example.com/fabric", 1000}};
  catalog_ = Catalog::FromTypes({fast});
  Restart();
  StepAndApply(demand_);
  const Catalog later = Catalog::FromTypes({Type("g.1", 8, 32, 2, kDollar)});
  Hook other(options_, &later);
  const auto node = other.ExpectedNode(The());
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(model::Get(node->allocatable, "example.com/fabric"), 1000);
  EXPECT_EQ(model::Get(node->allocatable, model::kCpuName), 4000);
  for (const char* text : {"cpu", "cpu=", "=1", "cpu=-1", "cpu=1,", "cpu=9223372036854775808"}) {
    The().meta.annotations.Set(kAnnouncedAnnotation, text);
    EXPECT_EQ(model::Get(other.ExpectedNode(The())->allocatable, model::kCpuName), 8000) << text;
  }
}

}  // namespace
}  // namespace fairlead::hook
