// Pods with ResourceClaims in the decision loop: from the pod to its binding, and every possible
// failure.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using model::AllocatedDevice;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kClaimClass[] = "nic.io";

class ClaimsTest : public DecisionLoopTest {
 protected:
  ClaimsTest() {
    options_.hook.enabled = false;
    Restart();
  }
  // Nodes n1, n2, ... with that many devices each.
  void Begin(int nodes = 1, int devices = 1) {
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    Put(MakeDeviceClass(kClaimClass));
    for (int i = 1; i <= nodes; ++i) {
      Put(MakeNode(absl::StrCat("n", i), 0));
      Put(MakeSlice(absl::StrCat("n", i), devices, kClaimClass));
    }
  }
  // The claim as the watch shows it, version by version.
  static model::ResourceClaim Claim(const std::string& name, int64_t version = 1,
                                    int64_t devices = 1) {
    model::ResourceClaim claim = MakeClaim(name, devices, kClaimClass);
    claim.meta.uid = "uid-claim-" + name;
    claim.meta.resource_version = absl::StrCat(version);
    return claim;
  }
  // The API server's claim after our write.
  static model::ResourceClaim Stored(const model::ReserveClaim& write, int64_t version) {
    model::ResourceClaim claim =
        Claim(write.name, version, static_cast<int64_t>(write.allocation.devices.size()));
    claim.finalizers = {model::kClaimFinalizer};
    claim.allocated = true;
    claim.devices = write.allocation.devices;
    model::SelectorRequirement node;
    node.key = "metadata.name";
    node.values = {write.allocation.node};
    claim.node_terms.emplace_back().match_fields.push_back(std::move(node));
    for (const auto& pod : write.pods) claim.reserved_for.push_back(pod.uid);
    return claim;
  }
  static model::Pod Pod(const std::string& name, std::vector<std::string> claims) {
    model::Pod pod = PodBuilder("ns", name).Queue("team").Build();
    pod.spec.resource_claims = std::move(claims);
    return pod;
  }
  static model::Pod OnNode(model::Pod pod, const std::string& node) {
    pod.node_name = node;
    pod.phase = model::PodPhase::kRunning;
    return pod;
  }
  // Adds a claim, and a pod that has it.
  void Ask(const std::string& pod, const std::string& claim) {
    Put(Claim(claim));
    Put(Pod(pod, {claim}));
  }
  void Cordon(const std::string& node) {
    model::Node cordoned = MakeNode(node, 0);
    cordoned.unschedulable = true;
    Put(cordoned);
  }
  static void AllocateOn(const std::string& node, model::ReserveClaim& write) {
    write.allocation.node = node;
    write.allocation.devices[0].pool = node;
  }
  void Delete(const model::Pod& pod) {
    loop_->Apply(model::Delete{model::Kind::kPod, pod.meta.ns, pod.meta.name, pod.meta.uid});
  }
  // Answers OK to the writes of a step; claims have that version.
  void Accept(const StepResult& step, int64_t version) {
    for (const Action& action : step.actions) {
      const bool claim = std::holds_alternative<model::ReserveClaim>(action.what);
      loop_->Apply(model::ActionResult{action.id, absl::OkStatus(),
                                       claim ? absl::StrCat(version) : std::string()});
    }
  }
  static model::ReserveClaim TheWrite(const StepResult& step) {
    const auto writes = Of<model::ReserveClaim>(step);
    EXPECT_THAT(writes, SizeIs(1));
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty()) << "bound before its claim";
    return writes.empty() ? model::ReserveClaim{} : writes[0];
  }
  // Pod "p" and its claim "c", from the pod to the reserved claim, in version 3.
  model::ReserveClaim Reserve() {
    Ask("p", "c");
    const StepResult step = Step(1);
    const model::ReserveClaim write = TheWrite(step);
    Accept(step, 3);
    Put(Stored(write, 3));
    return write;
  }
  static std::vector<std::string> Uids(const model::ReserveClaim& write) {
    std::vector<std::string> uids;
    for (const auto& pod : write.pods) uids.push_back(pod.uid);
    return uids;
  }
  // What a step tells the pod, which is written then.
  std::string ToldAt(int64_t at) {
    const StepResult step = Step(at);
    AnswerThe<model::SetPodUnschedulable>(step, absl::OkStatus());
    return VerdictIn(step);
  }
  static std::string VerdictIn(const StepResult& step) {
    const auto verdicts = Of<model::SetPodUnschedulable>(step);
    return verdicts.empty() ? "" : absl::StrCat(verdicts[0].reason, ": ", verdicts[0].message);
  }
};

// ---- refusals

TEST_F(ClaimsTest, WithoutTheApiThePodWaitsWithThatReasonUntilItIsThere) {
  Begin();
  loop_->Apply(model::Synced{model::Kind::kResourceClaim, /*missing=*/true});
  Put(Pod("p", {"c"}));
  EXPECT_THAT(ToldAt(1), HasSubstr("does not have resource.k8s.io/v1"));
  loop_->Apply(model::Synced{model::Kind::kResourceClaim});
  EXPECT_THAT(ToldAt(100),
              ::testing::AllOf(HasSubstr("MissingObject"), HasSubstr("ResourceClaim ns/c")));
  Put(Claim("c"));
  EXPECT_THAT(Of<model::ReserveClaim>(Step(200)), SizeIs(1));
}

TEST_F(ClaimsTest, AVerdictSaysWhichClaimAPodWaitsFor) {
  Begin();
  model::Pod pod = Pod("p", {});
  pod.spec.claim_templates = {"one-nic"};
  pod.awaited_claims = {"nic of template one-nic"};
  Put(pod);
  EXPECT_THAT(ToldAt(1), ::testing::AllOf(HasSubstr("MissingObject"),
                                          HasSubstr("ResourceClaim nic of template one-nic")));
  pod.awaited_claims.clear();
  pod.generated_claims = {"p-nic"};
  Put(pod);
  model::ResourceClaim claim = Claim("p-nic");
  claim.meta.owners = {{"v1", "Pod", "p", "another-uid", true}};
  Put(claim);
  EXPECT_THAT(ToldAt(100), HasSubstr("ResourceClaim ns/p-nic was made for another pod"));
  claim.meta.owners[0].uid = pod.meta.uid;
  claim.meta.deletion = At(150);
  Put(claim);
  EXPECT_THAT(ToldAt(200), HasSubstr("ResourceClaim ns/p-nic is being deleted"));
  claim.meta.deletion.reset();
  Put(claim);
  EXPECT_THAT(Of<model::ReserveClaim>(Step(300)), SizeIs(1));
}

TEST_F(ClaimsTest, ADefiniteNoSendsThePodBackAndItFollowsTheClaimElsewhere) {
  options_.emit_events = true;
  Restart();
  Begin(2);
  Ask("p", "c");
  const StepResult first = Step(1);
  model::ReserveClaim write = TheWrite(first);
  ASSERT_EQ(write.allocation.node, "n1");
  AnswerThe<model::ReserveClaim>(first, absl::FailedPreconditionError("allocated otherwise"));
  const StepResult second = Step(2);
  EXPECT_THAT(Of<model::BindPod>(second), IsEmpty());
  const auto events = Of<model::EmitEvent>(second);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].reason, "FailedBinding");
  EXPECT_THAT(events[0].note, HasSubstr("allocated otherwise"));
  // Another process's allocation, on the other node.
  AllocateOn("n2", write);
  const model::Pod foreign = OnNode(Pod("foreign", {"c"}), "n2");
  write.pods = {{"foreign", foreign.meta.uid}};
  Put(foreign);
  Put(Stored(write, 7));
  const model::ReserveClaim follows = TheWrite(Step(10));
  EXPECT_FALSE(follows.allocate);
  EXPECT_EQ(follows.resource_version, "7");
  EXPECT_EQ(follows.allocation.node, "n2");
  EXPECT_THAT(Uids(follows), ElementsAre("uid-ns-p"));
}

// The pod keeps its place and its devices.
TEST_F(ClaimsTest, AWriteThatIsPutOffIsRepeated) {
  Begin(1);
  Ask("p", "c");
  StepResult step = Step(1);
  AnswerThe<model::ReserveClaim>(step, absl::AbortedError("429"));
  step = Step(1);
  EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty());
  step = Step(3);
  ASSERT_THAT(Of<model::ReserveClaim>(step), SizeIs(1));
  EXPECT_EQ(TheWrite(step).allocation.node, "n1");
  AnswerThe<model::ReserveClaim>(step, absl::OkStatus());
  EXPECT_THAT(Of<model::BindPod>(Step(3)), SizeIs(1));
}

TEST_F(ClaimsTest, OneOfTwoClaimsThatIsRefusedHoldsThePod) {
  Begin(1, 2);
  Put(Claim("c"));
  Put(Claim("d"));
  Put(Pod("p", {"c", "d"}));
  const StepResult first = Step(1);
  ASSERT_THAT(Of<model::ReserveClaim>(first), SizeIs(2));
  for (const Action& action : first.actions) {
    const auto* write = std::get_if<model::ReserveClaim>(&action.what);
    if (write == nullptr) continue;
    loop_->Apply(model::ActionResult{
        action.id, write->name == "d" ? absl::NotFoundError("it is gone") : absl::OkStatus(), "2"});
  }
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty());
}

// ---- the order of writes

TEST_F(ClaimsTest, TheBindingFollowsTheAllocation) {
  Begin(1, 2);
  model::DeviceClass device_class = MakeDeviceClass(kClaimClass);
  device_class.config = {{{}, R"({"driver":"nic.io"})"}};
  Put(device_class);
  model::ResourceClaim claim = Claim("c", 5, 2);
  claim.requests[0].tolerations = R"([{"key":"k"}])";
  claim.config = {{{"r"}, R"({"driver":"other"})"}};
  claim.finalizers = {"other/finalizer"};
  Put(claim);
  Put(Pod("p", {"c"}));
  const StepResult step = Step(1);
  const model::ReserveClaim write = TheWrite(step);
  EXPECT_TRUE(write.allocate);
  EXPECT_EQ(write.uid, "uid-claim-c");
  EXPECT_EQ(write.resource_version, "5");
  EXPECT_THAT(write.finalizers, ElementsAre("other/finalizer"));
  EXPECT_EQ(write.allocation.node, "n1");
  EXPECT_THAT(write.allocation.devices,
              ElementsAre(AllocatedDevice{"r", kClaimClass, "n1", "0", R"([{"key":"k"}])"},
                          AllocatedDevice{"r", kClaimClass, "n1", "1", R"([{"key":"k"}])"}));
  using Config = model::ClaimAllocation::Config;
  EXPECT_THAT(write.allocation.config,
              ElementsAre(Config{true, {{"r"}, R"({"driver":"nic.io"})"}},
                          Config{false, {{"r"}, R"({"driver":"other"})"}}));
  EXPECT_THAT(Uids(write), ElementsAre("uid-ns-p"));
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty()) << "not answered yet";
  Accept(step, 7);
  const auto binds = Of<model::BindPod>(Step(3));
  ASSERT_THAT(binds, SizeIs(1));
  EXPECT_EQ(binds[0].node, "n1");
  EXPECT_TRUE(binds[0].annotations.Has(model::kLastStartAnnotation));
  // The watch confirms: nothing else has to be done.
  Put(Stored(write, 7));
  Put(OnNode(Pod("p", {"c"}), "n1"));
  EXPECT_THAT(Of<model::ReserveClaim>(Step(100)), IsEmpty());
  EXPECT_THAT(Of<model::DeallocateClaim>(Step(200)), IsEmpty());
}

TEST_F(ClaimsTest, AGangThatSharesAClaimIsReservedInOneWriteAndALateComerInAnother) {
  Begin();
  Put(Claim("c"));
  Put(MakeGroup("ns", "gang", "team", 2));
  for (const char* name : {"g0", "g1"}) {
    model::Pod pod = PodBuilder("ns", name).Queue("team").Group("gang").Build();
    pod.spec.resource_claims = {"c"};
    Put(pod);
  }
  const StepResult step = Step(1);
  const model::ReserveClaim write = TheWrite(step);
  EXPECT_THAT(Uids(write), ElementsAre("uid-ns-g0", "uid-ns-g1"));
  Put(Pod("late", {"c"}));
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), IsEmpty()) << "one write a claim at a time";
  Accept(step, 4);
  const StepResult next = Step(3);
  EXPECT_THAT(Of<model::BindPod>(next), SizeIs(2));
  const auto more = Of<model::ReserveClaim>(next);
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_FALSE(more[0].allocate);
  EXPECT_EQ(more[0].resource_version, "4") << "of our own write: the watch is late";
  EXPECT_THAT(Uids(more[0]), ElementsAre("uid-ns-late"));
  EXPECT_EQ(more[0].allocation.devices, write.allocation.devices);
}

// ---- devices that may have been written are allocated to no other claim

TEST_F(ClaimsTest, AWatchThatIsBehindOurWriteFreesNothing) {
  Begin();
  Ask("p", "c");
  const StepResult step = Step(1);
  const model::ReserveClaim write = TheWrite(step);
  Accept(step, 3);
  const StepResult bound = Step(2);
  ASSERT_THAT(Of<model::BindPod>(bound), SizeIs(1));
  AnswerThe<model::BindPod>(bound, absl::FailedPreconditionError("the node is gone for it"));
  // The finalizer, which was written before the status.
  model::ResourceClaim behind = Claim("c", 2);
  behind.finalizers = {model::kClaimFinalizer};
  Put(behind);
  Delete(Pod("p", {"c"}));
  Ask("q", "d");
  EXPECT_THAT(Of<model::ReserveClaim>(Step(3)), IsEmpty()) << "the device is given away";
  Put(Stored(write, 3));
  EXPECT_THAT(Of<model::ReserveClaim>(Step(4)), IsEmpty());
  Put(Claim("c", 9));  // deallocated by the claim controller
  EXPECT_THAT(Of<model::ReserveClaim>(Step(5)), SizeIs(1));
}

TEST_F(ClaimsTest, AWatchThatSkipsOurWriteIsBelieved) {
  Begin();
  Ask("p", "c");
  Accept(Step(1), 3);
  Step(2);
  Delete(Pod("p", {"c"}));
  Put(Claim("c", 8));
  Ask("q", "d");
  EXPECT_THAT(Of<model::ReserveClaim>(Step(3)), SizeIs(1));
}

TEST_F(ClaimsTest, AnUnknownOutcomeIsAskedForAgain) {
  Begin();
  Ask("p", "c");
  const StepResult first = Step(1);
  AnswerThe<model::ReserveClaim>(first, absl::UnavailableError("no answer"));
  const StepResult pause = Step(1);
  EXPECT_THAT(Of<model::ReserveClaim>(pause), IsEmpty());
  const StepResult again = StepsTo<model::ReserveClaim>(pause, At(60));
  const model::ReserveClaim write = TheWrite(again);
  EXPECT_TRUE(write.allocate);
  Accept(again, 5);
  EXPECT_THAT(Of<model::BindPod>(Step(70)), SizeIs(1));
}

TEST_F(ClaimsTest, AnUnknownOutcomeThatIsNoLongerWantedIsTakenBackFirst) {
  Begin();
  Ask("p", "c");
  const StepResult first = Step(1);
  AnswerThe<model::ReserveClaim>(first, absl::UnavailableError("no answer"));
  Step(1);
  Delete(Pod("p", {"c"}));
  Ask("q", "d");
  StepResult step = Step(60);
  EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty()) << "the device may be given away";
  const auto back = Of<model::DeallocateClaim>(step);
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_EQ(back[0].name, "c");
  EXPECT_EQ(back[0].resource_version, "1");
  AnswerThe<model::DeallocateClaim>(step, absl::FailedPreconditionError("changed"));
  Step(61);
  Put(Claim("c", 2));  // the finalizer
  step = Step(200);
  EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty());
  ASSERT_THAT(Of<model::DeallocateClaim>(step), SizeIs(1));
  EXPECT_EQ(Of<model::DeallocateClaim>(step)[0].resource_version, "2");
  AnswerAll(step);
  EXPECT_THAT(Of<model::ReserveClaim>(Step(201)), SizeIs(1));
}

// The pod waits again with the reason, and its devices stay taken until the claim is seen.
TEST_F(ClaimsTest, ARefusalAfterAnUnknownOutcomeFreesNothing) {
  for (const bool committed : {true, false}) {
    for (const absl::Status& refusal :
         {absl::PermissionDeniedError("403"), absl::InvalidArgumentError("422")}) {
      SCOPED_TRACE(absl::StrCat(refusal.ToString(), committed ? ", committed" : ""));
      options_.emit_events = true;
      Restart();
      Begin();
      Ask("p", "c");
      StepResult step = Step(1);
      const model::ReserveClaim write = TheWrite(step);
      AnswerThe<model::ReserveClaim>(step, absl::UnavailableError("no answer"));
      step = StepsTo<model::ReserveClaim>(Step(1), At(60));
      AnswerThe<model::ReserveClaim>(step, refusal);
      step = Step(3);
      bool told = false;
      for (const auto& event : Of<model::EmitEvent>(step)) {
        told = told || event.reason == "FailedBinding";
      }
      EXPECT_TRUE(told);
      Delete(Pod("p", {"c"}));
      Ask("q", "d");
      EXPECT_THAT(Of<model::ReserveClaim>(Step(3)), IsEmpty()) << "the device may be given away";
      if (committed) {
        Put(Stored(write, 3));
        EXPECT_THAT(Of<model::ReserveClaim>(Step(4)), IsEmpty());
        Put(Claim("c", 9));
      } else {
        step = Step(60);
        ASSERT_THAT(Of<model::DeallocateClaim>(step), SizeIs(1));
        AnswerAll(step);
      }
      EXPECT_THAT(Of<model::ReserveClaim>(Step(61)), SizeIs(1));
    }
  }
}

// ---- bindings that fail

TEST_F(ClaimsTest, AFailedBindingLeavesTheClaimForTheNextAttempt) {
  Begin(2);
  const model::ReserveClaim write = Reserve();
  const StepResult bound = Step(2);
  AnswerThe<model::BindPod>(bound, absl::FailedPreconditionError("conflict"));
  Step(3);
  const StepResult again = Step(8);
  ASSERT_EQ(write.allocation.node, "n1");
  EXPECT_THAT(Of<model::ReserveClaim>(again), IsEmpty()) << "it is reserved already";
  EXPECT_THAT(Of<model::DeallocateClaim>(again), IsEmpty());
  ASSERT_THAT(Of<model::BindPod>(again), SizeIs(1));
  EXPECT_EQ(Of<model::BindPod>(again)[0].node, "n1");
}

// The pod could come after all, while its claim was on its way out.
TEST_F(ClaimsTest, NoPodIsBoundOnAClaimThatIsBeingDeallocated) {
  Begin(2);
  Reserve();
  AnswerThe<model::BindPod>(Step(2), absl::FailedPreconditionError("conflict"));
  Cordon("n1");
  Step(5);
  const StepResult due = Step(15);
  ASSERT_THAT(Of<model::DeallocateClaim>(due), SizeIs(1));
  Put(MakeNode("n1", 8));
  EXPECT_THAT(Of<model::BindPod>(Step(16)), IsEmpty());
  AnswerAll(due);
  EXPECT_THAT(Of<model::BindPod>(Step(30)), IsEmpty()) << "the watch does not show it yet";
  Put(Claim("c", 9));
  StepResult step = Step(80);
  ASSERT_THAT(Of<model::ReserveClaim>(step), SizeIs(1));
  EXPECT_TRUE(TheWrite(step).allocate);
}

TEST_F(ClaimsTest, WhatIsAllocatedForAPodThatCannotComeIsTakenBackAfterAWhile) {
  Begin(2);
  const model::ReserveClaim write = Reserve();
  AnswerThe<model::BindPod>(Step(2), absl::FailedPreconditionError("conflict"));
  Cordon("n1");
  const StepResult waits = Step(5);
  EXPECT_THAT(Of<model::DeallocateClaim>(waits), IsEmpty());
  EXPECT_LE(waits.wake_at, At(15));
  StepResult due = Step(15);
  const auto back = Of<model::DeallocateClaim>(due);
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_EQ(back[0].uid, "uid-claim-c");
  EXPECT_EQ(back[0].resource_version, "3");
  AnswerAll(due);
  Put(Claim("c", 4));
  const model::ReserveClaim elsewhere = TheWrite(Step(16));
  EXPECT_EQ(elsewhere.allocation.node, "n2");
}

TEST_F(ClaimsTest, ADeallocationThatFailsIsRepeatedEverLaterAndNotWhenTheClaimIsUsed) {
  for (const absl::Status& answer :
       {absl::PermissionDeniedError("403"), absl::FailedPreconditionError("409"),
        absl::UnavailableError("no answer"), absl::OkStatus()}) {
    SCOPED_TRACE(answer.ToString());
    Restart();
    Begin(2);
    Reserve();
    AnswerThe<model::BindPod>(Step(2), absl::FailedPreconditionError("conflict"));
    Cordon("n1");
    int sent = 0;
    for (int at = 5; at < 600; ++at) {
      const StepResult step = Step(at);
      sent += static_cast<int>(Of<model::DeallocateClaim>(step).size());
      AnswerThe<model::DeallocateClaim>(step, answer);
    }
    EXPECT_GE(sent, 3);
    EXPECT_LE(sent, 16);
    if (answer.ok()) continue;  // what was done is shown
    Put(MakeNode("n1", 0));     // the pod can come again
    for (int at = 600; at < 800; ++at) {
      const StepResult step = Step(at);
      EXPECT_THAT(Of<model::DeallocateClaim>(step), IsEmpty()) << at;
      AnswerAll(step);
    }
  }
}

TEST_F(ClaimsTest, WhatAnotherPodUsesIsNotTakenBack) {
  struct Case {
    const char* what;
    bool foreign_reservation, running_consumer;
  };
  for (const Case& c :
       {Case{"a pod that we do not see", true, false}, Case{"a pod that runs", false, true}}) {
    SCOPED_TRACE(c.what);
    Restart();
    Begin(2);
    model::ReserveClaim write;
    write.name = "c";
    write.allocation = {"n1", {{"r", kClaimClass, "n1", "0"}}, {}};
    write.pods = {{"p", "uid-ns-p"}};
    if (c.foreign_reservation) write.pods.push_back({"x", "foreign"});
    Put(Stored(write, 3));
    if (c.running_consumer) Put(OnNode(Pod("runs", {"c"}), "n1"));
    Cordon("n1");
    Put(Pod("p", {"c"}));
    for (int64_t at : {1, 20, 60}) {
      const StepResult step = Step(at);
      EXPECT_THAT(Of<model::DeallocateClaim>(step), IsEmpty());
      EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty());
    }
  }
}

// ---- restarts

TEST_F(ClaimsTest, AfterARestartBetweenReservationAndBindingOnlyTheBindingIsLeft) {
  Begin(2);
  Ask("p", "c");
  const StepResult step = Step(1);
  model::ReserveClaim write = TheWrite(step);
  // Of another process, on a node that this process would not choose.
  AllocateOn("n2", write);
  Restart();
  Begin(2);
  Put(Stored(write, 3));
  Put(Pod("p", {"c"}));
  const StepResult after = Step(10);
  EXPECT_THAT(Of<model::ReserveClaim>(after), IsEmpty());
  const auto binds = Of<model::BindPod>(after);
  ASSERT_THAT(binds, SizeIs(1));
  EXPECT_EQ(binds[0].node, "n2");
}

TEST_F(ClaimsTest, AfterARestartBetweenTheFinalizerAndTheStatusItIsAllocated) {
  Begin();
  model::ResourceClaim claim = Claim("c", 2);
  claim.finalizers = {model::kClaimFinalizer};
  Put(claim);
  Put(Pod("p", {"c"}));
  const model::ReserveClaim write = TheWrite(Step(1));
  EXPECT_TRUE(write.allocate);
  EXPECT_THAT(write.finalizers, ElementsAre(model::kClaimFinalizer));
}

TEST_F(ClaimsTest, ANodeThatVanishesBeforeTheAnswerGetsNoBinding) {
  Begin();
  Ask("p", "c");
  const StepResult step = Step(1);
  TheWrite(step);
  loop_->Apply(model::Delete{model::Kind::kNode, "", "n1", "uid-n1"});
  Accept(step, 3);
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty());
}

TEST_F(ClaimsTest, ANodeThatIsCordonedBeforeTheAnswerGetsNoBindingUntilItIsOpen) {
  Begin();
  Reserve();
  Cordon("n1");
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty());
  EXPECT_THAT(Of<model::BindPod>(Step(3)), IsEmpty());
  Put(MakeNode("n1", 0));
  EXPECT_THAT(BoundIn(Step(4)), ElementsAre("p"));
}

TEST_F(ClaimsTest, APodThatVanishesBeforeTheAnswerIsNotBound) {
  Begin();
  Ask("p", "c");
  const StepResult step = Step(1);
  TheWrite(step);
  Delete(Pod("p", {"c"}));
  Accept(step, 3);
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
