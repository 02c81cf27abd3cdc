// Pods whose extended resources are given by claims, in the decision loop: from the pod to its
// binding, and every possible failure.
#include "scheduler/state/extended_claims.h"

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kBackedResource[] = "example.com/fpga";
constexpr char kDriver[] = "fpga.io";

class ExtendedClaimsTest : public DecisionLoopTest {
 protected:
  ExtendedClaimsTest() {
    options_.hook.enabled = false;
    Restart();
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    model::DeviceClass gives = MakeDeviceClass("fpga", {"device.driver == \"fpga.io\""});
    gives.extended_resource = kBackedResource;
    Put(gives);
  }
  void AddClaimNode(const std::string& name, int devices = 1) {
    Put(MakeNode(name, 0));
    Put(MakeSlice(name, devices, kDriver));
  }
  static model::Node PluginNode(const std::string& name) {
    model::Node node = MakeNode(name, 0);
    model::Set(node.allocatable, kBackedResource, 1);
    return node;
  }
  void Cordon(const std::string& name) {
    model::Node node = MakeNode(name, 0);
    node.unschedulable = true;
    Put(node);
  }
  static model::Pod Pod(const std::string& name, const std::string& told = "") {
    model::Pod pod = PodBuilder("ns", name).Queue("team").Build();
    model::Set(pod.spec.requests, kBackedResource, 1);
    pod.extended_claim = told;
    return pod;
  }
  // As the API server shows what the write made.
  static model::ResourceClaim Made(const model::SetExtendedClaim& write) {
    model::ResourceClaim claim = model::testing::MakeClaim(write.claim, 1, "fpga");
    claim.meta.uid = "uid-" + write.claim;
    claim.meta.resource_version = "1";
    claim.requests[0].name = "container-0-request-0";
    claim.meta.owners.push_back({"v1", "Pod", write.name, write.uid, true});
    return claim;
  }
  static model::SetExtendedClaim TheWrite(const StepResult& step) {
    const auto writes = Of<model::SetExtendedClaim>(step);
    EXPECT_THAT(writes, SizeIs(1));
    EXPECT_THAT(BoundIn(step), IsEmpty()) << "bound before its claim";
    return writes.empty() ? model::SetExtendedClaim{} : writes[0];
  }
};

TEST_F(ExtendedClaimsTest, TheClaimIsMadeThenReservedThenThePodIsBound) {
  AddClaimNode("n1");
  Put(Pod("p"));
  const StepResult decided = Step(1);
  const model::SetExtendedClaim write = TheWrite(decided);
  EXPECT_EQ(write.name, "p");
  EXPECT_EQ(write.node, "n1");
  EXPECT_EQ(write.claim, state::ExtendedClaimName("p", write.uid));
  EXPECT_THAT(write.resources,
              ElementsAre(model::SetExtendedClaim::Resource{kBackedResource, "fpga"}));
  AnswerAll(decided);
  // The answer alone does not say what the claim is now.
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), IsEmpty());
  Put(Made(write));
  const StepResult shown = Step(3);
  const auto reserved = Of<model::ReserveClaim>(shown);
  ASSERT_THAT(reserved, SizeIs(1));
  EXPECT_EQ(reserved[0].uid, "uid-" + write.claim);
  ASSERT_THAT(reserved[0].allocation.devices, SizeIs(1));
  EXPECT_EQ(reserved[0].allocation.devices[0].request, "container-0-request-0");
  AnswerAll(shown);
  EXPECT_THAT(BoundIn(Step(4)), ElementsAre("p"));
}

TEST_F(ExtendedClaimsTest, ANodeWithADevicePluginNeedsNone) {
  Put(PluginNode("n1"));
  Put(Pod("p"));
  const StepResult step = Step(1);
  EXPECT_THAT(Of<model::SetExtendedClaim>(step), IsEmpty());
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
}

// The kubelet would wait for that claim.
TEST_F(ExtendedClaimsTest, WhatTheStatusNamesIsTakenBackForSuchANode) {
  Put(PluginNode("n1"));
  Put(Pod("p", "of-an-attempt-before"));
  const StepResult step = Step(1);
  EXPECT_EQ(TheWrite(step).claim, "");
  AnswerAll(step);
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("p"));
}

TEST_F(ExtendedClaimsTest, ARefusalGivesTheDevicesBack) {
  AddClaimNode("n1");
  Put(Pod("p"));
  AnswerThe<model::SetExtendedClaim>(Step(1), absl::PermissionDeniedError("quota of claims"));
  Cordon("n1");
  AddClaimNode("n2");
  StepResult again = Step(2);
  if (Of<model::SetExtendedClaim>(again).empty()) {
    again = StepsTo<model::SetExtendedClaim>(again, At(100));
  }
  EXPECT_EQ(TheWrite(again).node, "n2");
}

TEST_F(ExtendedClaimsTest, APutOffIsAskedAgain) {
  AddClaimNode("n1");
  Put(Pod("p"));
  const StepResult first = Step(1);
  const model::SetExtendedClaim write = TheWrite(first);
  AnswerThe<model::SetExtendedClaim>(first, absl::AbortedError("429"));
  EXPECT_THAT(Of<model::SetExtendedClaim>(Step(1)), IsEmpty());
  EXPECT_EQ(TheWrite(Step(3)).claim, write.claim);
}

TEST_F(ExtendedClaimsTest, AnUnknownOutcomeIsAskedAgain) {
  AddClaimNode("n1");
  Put(Pod("p"));
  AnswerThe<model::SetExtendedClaim>(Step(1), absl::UnavailableError("reset"));
  const StepResult again = StepsTo<model::SetExtendedClaim>(Step(1), At(60));
  const model::SetExtendedClaim write = TheWrite(again);
  AnswerAll(again);
  Put(Made(write));
  EXPECT_THAT(Of<model::ReserveClaim>(Step(61)), SizeIs(1));
}

// The refusal says nothing about the lost attempt, and would come for ever.
TEST_F(ExtendedClaimsTest, ARefusalAfterALostAnswerIsBelieved) {
  AddClaimNode("n1");
  Put(Pod("p"));
  AnswerThe<model::SetExtendedClaim>(Step(1), absl::UnavailableError("reset"));
  const StepResult again = StepsTo<model::SetExtendedClaim>(Step(1), At(60));
  Cordon("n1");
  AddClaimNode("n2");
  AnswerThe<model::SetExtendedClaim>(again, absl::PermissionDeniedError("quota of claims"));
  StepResult next = Step(61);
  if (Of<model::SetExtendedClaim>(next).empty()) {
    next = StepsTo<model::SetExtendedClaim>(next, At(200));
  }
  EXPECT_EQ(TheWrite(next).node, "n2");
}

TEST_F(ExtendedClaimsTest, AClaimThatIsNeverShownFailsTheBinding) {
  AddClaimNode("n1");
  Put(Pod("p"));
  AnswerAll(Step(1));
  StepResult step = Step(2);
  EXPECT_LE(step.wake_at, At(120));
  step = StepAt(step.wake_at);
  // The device is free for the next attempt.
  const StepResult again = StepsTo<model::SetExtendedClaim>(step, At(300));
  EXPECT_EQ(TheWrite(again).node, "n1");
}

TEST_F(ExtendedClaimsTest, APodThatGoesMeanwhileLeavesItsDevices) {
  AddClaimNode("n1");
  Put(Pod("p"));
  const StepResult decided = Step(1);
  Put(Pod("q"));
  EXPECT_THAT(Of<model::SetExtendedClaim>(Step(2)), IsEmpty());
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", Pod("p").meta.uid});
  EXPECT_EQ(TheWrite(Step(3)).name, "q");
  AnswerAll(decided);
  EXPECT_THAT(BoundIn(Step(4)), IsEmpty());
}

TEST_F(ExtendedClaimsTest, AfterARestartTheClaimOfTheFormerProcessServes) {
  AddClaimNode("n1");
  model::SetExtendedClaim former;
  former.name = "p";
  former.uid = Pod("p").meta.uid;
  former.claim = state::ExtendedClaimName("p", former.uid);
  Put(Made(former));
  Put(Pod("p", former.claim));
  const StepResult step = Step(1);
  EXPECT_THAT(Of<model::SetExtendedClaim>(step), IsEmpty());
  EXPECT_THAT(Of<model::ReserveClaim>(step), SizeIs(1));
}

TEST_F(ExtendedClaimsTest, AnotherClaimOfThatNameIsTold) {
  AddClaimNode("n1");
  model::SetExtendedClaim foreign;
  foreign.name = "p";
  foreign.uid = "another";
  foreign.claim = state::ExtendedClaimName("p", Pod("p").meta.uid);
  Put(Made(foreign));
  Put(Pod("p"));
  const auto told = Of<model::SetPodUnschedulable>(Step(1));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "InvalidRequest");
  EXPECT_THAT(told[0].message, HasSubstr("is not of this pod; delete it"));
}

TEST_F(ExtendedClaimsTest, AGangHasAClaimForEachPod) {
  AddClaimNode("n1", 2);
  Put(MakeGroup("ns", "g", "team", 2));
  for (const char* name : {"a", "b"}) {
    model::Pod pod = Pod(name);
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "g");
    Put(pod);
  }
  const StepResult decided = Step(1);
  const auto writes = Of<model::SetExtendedClaim>(decided);
  ASSERT_THAT(writes, SizeIs(2));
  AnswerAll(decided);
  for (const model::SetExtendedClaim& write : writes) Put(Made(write));
  const StepResult shown = Step(2);
  EXPECT_THAT(Of<model::ReserveClaim>(shown), SizeIs(2));
  AnswerAll(shown);
  EXPECT_THAT(BoundIn(Step(3)), SizeIs(2));
}

}  // namespace
}  // namespace fairlead::core::testing
