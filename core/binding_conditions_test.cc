// Devices that are not ready when they are allocated (bindingConditions), in the decision loop: a
// pod is bound once its driver says that they are, and every way in which that fails.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFabric[] = "fabric.io";
constexpr int64_t kTimeout = 600;  // seconds: the default

// One fabric with devices for all nodes, which have to be attached first.
class BindingConditionsTest : public NoHookTest {
 protected:
  BindingConditionsTest() {
    options_.emit_events = true;
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    Put(MakeDeviceClass(kFabric));
    for (const char* node : {"n1", "n2"}) Put(MakeNode(node, 0));
    Put(Fabric(2));
  }
  static model::ResourceSlice Fabric(int64_t devices) {
    model::ResourceSlice slice = MakeSlice("pool", devices, kFabric);
    slice.nodes = {};
    slice.nodes.all = true;
    for (model::Device& device : slice.devices) {
      device.binds_to_node = true;
      device.binding_conditions = {"Attached", "Powered"};
      device.binding_failure_conditions = {"Failed"};
    }
    return slice;
  }
  static model::ResourceClaim FreeClaim(const std::string& name, int64_t version = 1) {
    model::ResourceClaim claim = MakeClaim(name, 1, kFabric);
    claim.meta.uid = "uid-claim-" + name;
    claim.meta.resource_version = absl::StrCat(version);
    return claim;
  }
  static model::Pod User(const std::string& name, const std::string& claim) {
    model::Pod pod = PodBuilder("ns", name).Queue("team").Build();
    pod.spec.resource_claims = {claim};
    return pod;
  }
  // As the server has it after that write, which was made at second 1.
  static model::ResourceClaim After(const model::ReserveClaim& write, int64_t version) {
    model::ResourceClaim claim = FreeClaim(write.name, version);
    claim.finalizers = {model::kClaimFinalizer};
    claim.allocated = true;
    claim.devices = write.allocation.devices;
    claim.node_terms = *write.allocation.node_terms;
    claim.allocated_at = At(1);
    for (const auto& pod : write.pods) claim.reserved_for.push_back(pod.uid);
    return claim;
  }
  // The driver reports these conditions of the claim's devices.
  static model::ResourceClaim Reported(model::ResourceClaim claim, int64_t version,
                                       std::vector<model::DeviceCondition> conditions) {
    claim.meta.resource_version = absl::StrCat(version);
    claim.reports.clear();
    for (const model::AllocatedDevice& device : claim.devices) {
      claim.reports.push_back({device.driver, device.pool, device.device, conditions});
    }
    return claim;
  }
  static model::ResourceClaim IsReady(const model::ResourceClaim& claim, int64_t version) {
    return Reported(claim, version, {{"Attached", true}, {"Powered", true}});
  }
  static model::ResourceClaim HasFailed(const model::ResourceClaim& claim, int64_t version) {
    return Reported(claim, version, {{"Attached", true}, {"Failed", true, "Cable", "it is out"}});
  }
  void AcceptAt(const StepResult& step, int64_t version) {
    for (const Action& action : step.actions) {
      const bool claim = std::holds_alternative<model::ReserveClaim>(action.what);
      loop_->Apply(model::ActionResult{action.id, absl::OkStatus(),
                                       claim ? absl::StrCat(version) : std::string()});
    }
  }
  // Pod "p" with claim "c", from the pod to the claim that is reserved for it, in version 3; at
  // second 1.
  model::ResourceClaim ReserveForP() {
    Put(FreeClaim("c"));
    Put(User("p", "c"));
    const StepResult step = Step(1);
    const auto writes = Of<model::ReserveClaim>(step);
    EXPECT_THAT(writes, SizeIs(1));
    if (writes.empty()) return {};
    AcceptAt(step, 3);
    model::ResourceClaim claim = After(writes[0], 3);
    Put(claim);
    return claim;
  }
  // Of events about pods, "reason: note".
  static std::vector<std::string> Told(const StepResult& step) {
    std::vector<std::string> told;
    for (const auto& event : Of<model::EmitEvent>(step)) {
      told.push_back(absl::StrCat(event.reason, ": ", event.note));
    }
    return told;
  }
  // Nothing is written at that time.
  void ExpectWaits(int64_t at) {
    const StepResult step = Step(at);
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty()) << at;
    EXPECT_THAT(Of<model::DeallocateClaim>(step), IsEmpty()) << at;
    EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty()) << at;
  }
};

// ---- failures

TEST_F(BindingConditionsTest, AFailureDeallocatesTheClaimAndThePodIsTriedAgain) {
  const model::ResourceClaim claim = ReserveForP();
  ExpectWaits(2);
  Put(HasFailed(claim, 4));
  const StepResult failed = Step(3);
  EXPECT_THAT(Of<model::BindPod>(failed), IsEmpty());
  EXPECT_THAT(Told(failed),
              ::testing::Contains(
                  HasSubstr("FailedBinding: ResourceClaim ns/c: device fabric.io/pool/0 has the "
                            "condition Failed (Cable): it is out")));
  const auto back = Of<model::DeallocateClaim>(failed);
  ASSERT_THAT(back, SizeIs(1)) << "without the grace of claims that may still be of use";
  EXPECT_EQ(back[0].resource_version, "4");
  AnswerAll(failed);
  ExpectWaits(4);
  Put(FreeClaim("c", 5));
  const StepResult again = StepsTo<model::ReserveClaim>(Step(5), At(60));
  ASSERT_THAT(Of<model::ReserveClaim>(again), SizeIs(1));
  EXPECT_TRUE(Of<model::ReserveClaim>(again)[0].allocate);
}

TEST_F(BindingConditionsTest, TheTimeOutCountsFromTheAllocation) {
  const model::ResourceClaim claim = ReserveForP();
  StepResult step = Step(2);
  Put(Reported(claim, 4, {{"Attached", true}, {"Powered", false}}));
  step = Step(kTimeout);
  EXPECT_THAT(Of<model::DeallocateClaim>(step), IsEmpty());
  EXPECT_LE(step.wake_at, At(1 + kTimeout));
  step = Step(1 + kTimeout);
  EXPECT_THAT(Told(step),
              ::testing::Contains(HasSubstr("ResourceClaim ns/c: not ready 10m after its "
                                            "allocation: Powered of device fabric.io/pool/0")));
  EXPECT_THAT(Of<model::DeallocateClaim>(step), SizeIs(1));
}

TEST_F(BindingConditionsTest, TheTimeOutIsTheLongestOfTheProfiles) {
  framework::Profile& profile = options_.profiles[0];
  const auto plugin =
      std::find_if(profile.plugins.begin(), profile.plugins.end(),
                   [](const auto& each) { return each.name == "DynamicResources"; });
  ASSERT_NE(plugin, profile.plugins.end());
  plugin->args_json = R"({"bindingTimeout":"20s"})";
  Begin();
  ReserveForP();
  ExpectWaits(20);
  EXPECT_THAT(Of<model::DeallocateClaim>(Step(21)), SizeIs(1));
}

// An allocation without a time, of another scheduler, or with one in the future.
TEST_F(BindingConditionsTest, AnAllocationThatDoesNotSayWhenHasTheTimeOutFromTheReservation) {
  for (const auto& at : {std::optional<absl::Time>(), std::make_optional(At(1'000'000))}) {
    Begin();
    model::ResourceClaim claim = ReserveForP();
    claim.meta.resource_version = "4";
    claim.allocated_at = at;
    Put(claim);
    ExpectWaits(2);
    ExpectWaits(kTimeout);
    const StepResult step = Step(2 + kTimeout);
    EXPECT_THAT(Told(step), ::testing::Contains(HasSubstr("FailedBinding")));
  }
}

TEST_F(BindingConditionsTest, AClaimThatIsDeallocatedByOthersMeanwhileFailsThePod) {
  ReserveForP();
  ExpectWaits(2);
  Put(FreeClaim("c", 9));
  const StepResult step = Step(3);
  EXPECT_THAT(Told(step), ::testing::Contains(HasSubstr("ns/c is no longer allocated")));
  EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
}

TEST_F(BindingConditionsTest, AClaimThatIsAllocatedOtherwiseOrMadeAgainFailsThePod) {
  for (const bool again : {false, true}) {
    Begin();
    model::ResourceClaim claim = ReserveForP();
    ExpectWaits(2);
    if (again) {
      claim = FreeClaim("c", 9);
      claim.meta.uid = "another";
      Put(claim);
    } else {
      claim.devices[0].device = "1";
      Put(IsReady(claim, 4));
    }
    const StepResult step = Step(3);
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
    EXPECT_THAT(Told(step), ::testing::Contains(HasSubstr("FailedBinding")));
  }
}

TEST_F(BindingConditionsTest, APodThatGoesWhileItWaitsLeavesNothingBehind) {
  const model::ResourceClaim claim = ReserveForP();
  ExpectWaits(2);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  Put(IsReady(claim, 4));
  ExpectWaits(3);
  ExpectWaits(2 + kTimeout);
}

// The claim of a pod that runs is not taken away, whatever its driver says later.
TEST_F(BindingConditionsTest, AClaimThatAnotherPodRunsWithIsNotDeallocated) {
  const model::ResourceClaim claim = ReserveForP();
  Put(IsReady(claim, 4));
  AnswerAll(Step(2));
  model::Pod runs = User("p", "c");
  runs.node_name = "n1";
  runs.phase = model::PodPhase::kRunning;
  Put(runs);
  Put(HasFailed(claim, 5));
  Put(User("q", "c"));
  StepResult step = Step(3);
  for (int64_t at = 4; at < 40; ++at) {
    EXPECT_THAT(Of<model::DeallocateClaim>(step), IsEmpty());
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
    AcceptAt(step, 6);
    step = Step(at);
  }
}

// ---- the way to the binding

TEST_F(BindingConditionsTest, ThePodIsBoundOnceAllConditionsAreTrue) {
  Put(FreeClaim("c"));
  Put(User("p", "c"));
  const StepResult first = Step(1);
  const auto writes = Of<model::ReserveClaim>(first);
  ASSERT_THAT(writes, SizeIs(1));
  const model::AllocatedDevice& device = writes[0].allocation.devices.at(0);
  EXPECT_THAT(device.binding_conditions, ElementsAre("Attached", "Powered"));
  EXPECT_THAT(device.binding_failure_conditions, ElementsAre("Failed"));
  AcceptAt(first, 3);
  StepResult step = Step(2);  // the watch does not show the allocation yet
  EXPECT_THAT(Told(step),
              ElementsAre("BindingConditionsPending: waiting for binding conditions for device on "
                          "node n1"));
  EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
  const model::ResourceClaim claim = After(writes[0], 3);
  Put(claim);
  ExpectWaits(3);
  Put(Reported(claim, 4, {{"Attached", true}, {"Powered", false}}));
  step = Step(4);
  EXPECT_THAT(Told(step), IsEmpty()) << "told again";
  EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
  Put(IsReady(claim, 5));
  step = Step(5);
  ASSERT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_EQ(Of<model::BindPod>(step)[0].node, "n1");
}

TEST_F(BindingConditionsTest, NominatedNodeNameIsWrittenMeanwhile) {
  ReserveForP();
  const StepResult step = StepsTo<model::NominateNode>(Step(1), At(60));
  ASSERT_THAT(Of<model::NominateNode>(step), SizeIs(1));
  EXPECT_EQ(Of<model::NominateNode>(step)[0].node, "n1");
}

TEST_F(BindingConditionsTest, DevicesWithoutConditionsAreTakenFirst) {
  model::ResourceSlice slice = Fabric(2);
  slice.devices[1].binding_conditions.clear();
  Put(slice);
  Put(FreeClaim("c"));
  Put(User("p", "c"));
  const StepResult step = Step(1);
  ASSERT_THAT(Of<model::ReserveClaim>(step), SizeIs(1));
  EXPECT_EQ(Of<model::ReserveClaim>(step)[0].allocation.devices[0].device, "1");
  AcceptAt(step, 3);
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("p"));
}

// A server without the feature drops the fields.
TEST_F(BindingConditionsTest, WhatTheServerDoesNotKeepIsNotAwaited) {
  model::ResourceClaim claim = ReserveForP();
  claim.meta.resource_version = "4";
  claim.devices[0].binding_conditions.clear();
  claim.devices[0].binding_failure_conditions.clear();
  claim.allocated_at.reset();
  Put(claim);
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("p"));
}

TEST_F(BindingConditionsTest, ALateComerWaitsForTheSameDevices) {
  const model::ResourceClaim claim = ReserveForP();
  ExpectWaits(2);
  Put(User("q", "c"));
  const StepResult late = Step(3);
  const auto writes = Of<model::ReserveClaim>(late);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_FALSE(writes[0].allocate);
  EXPECT_EQ(writes[0].pods.size(), 1u);
  AcceptAt(late, 4);
  model::ResourceClaim both = claim;
  both.reserved_for.push_back("uid-ns-q");
  both.meta.resource_version = "4";
  Put(both);
  ExpectWaits(4);
  Put(IsReady(both, 5));
  EXPECT_THAT(BoundIn(Step(5)), ElementsAre("p", "q"));
}

TEST_F(BindingConditionsTest, AFailureFailsAllPodsOfTheClaim) {
  const model::ResourceClaim claim = ReserveForP();
  Put(User("q", "c"));
  AcceptAt(Step(2), 4);
  model::ResourceClaim both = claim;
  both.reserved_for.push_back("uid-ns-q");
  Put(HasFailed(both, 5));
  const StepResult step = Step(3);
  const std::vector<std::string> told = Told(step);
  EXPECT_EQ(std::count_if(told.begin(), told.end(),
                          [](const auto& each) { return each.rfind("FailedBinding", 0) == 0; }),
            2);
  EXPECT_THAT(Of<model::DeallocateClaim>(step), SizeIs(1));
}

TEST_F(BindingConditionsTest, OfAGangNoneIsBoundBeforeTheDevicesOfAllAreReady) {
  Put(MakeGroup("ns", "gang", "team", 2));
  for (const char* name : {"a", "b"}) {
    Put(FreeClaim(absl::StrCat("c-", name)));
    model::Pod pod = PodBuilder("ns", name).Queue("team").Group("gang").Build();
    pod.spec.resource_claims = {absl::StrCat("c-", name)};
    Put(pod);
  }
  const StepResult step = Step(1);
  const auto writes = Of<model::ReserveClaim>(step);
  ASSERT_THAT(writes, SizeIs(2));
  AcceptAt(step, 3);
  for (const auto& write : writes) Put(After(write, 3));
  Put(IsReady(After(writes[0], 3), 4));
  ExpectWaits(2);
  Put(IsReady(After(writes[1], 3), 4));
  EXPECT_THAT(BoundIn(Step(3)), SizeIs(2));
}

// ---- restarts

TEST_F(BindingConditionsTest, AfterARestartThePodGoesOnWaitingOnItsNode) {
  const model::ResourceClaim claim = ReserveForP();
  ExpectWaits(2);
  Begin();
  Put(claim);
  Put(User("p", "c"));
  ExpectWaits(100);
  Put(IsReady(claim, 4));
  const StepResult step = Step(101);
  ASSERT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_EQ(Of<model::BindPod>(step)[0].node, "n1");
}

TEST_F(BindingConditionsTest, ARestartGivesNoMoreTime) {
  const model::ResourceClaim claim = ReserveForP();
  Begin();
  Put(claim);
  Put(User("p", "c"));
  ExpectWaits(kTimeout);
  EXPECT_THAT(Of<model::DeallocateClaim>(Step(1 + kTimeout)), SizeIs(1));
}

TEST_F(BindingConditionsTest, WhatFailedBeforeARestartIsDeallocatedAfterIt) {
  for (const bool timed_out : {false, true}) {
    Begin();
    const model::ResourceClaim claim = ReserveForP();
    Begin();
    Put(timed_out ? claim : HasFailed(claim, 4));
    Put(User("p", "c"));
    const StepResult step = Step(timed_out ? 10 * kTimeout : 2);
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
    const StepResult next = Of<model::DeallocateClaim>(step).empty()
                                ? StepsTo<model::DeallocateClaim>(step, step.wake_at)
                                : step;
    EXPECT_THAT(Of<model::DeallocateClaim>(next), SizeIs(1));
  }
}

// ---- devices for several claims at once

TEST_F(BindingConditionsTest, IfAllDevicesAreForSeveralClaimsTheVerdictSaysSo) {
  model::ResourceSlice slice = Fabric(5);
  for (model::Device& device : slice.devices) device.for_several = true;
  Put(slice);
  Put(FreeClaim("c"));
  Put(User("p", "c"));
  const StepResult step = Step(1);
  EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty());
  const auto verdicts = Of<model::SetPodUnschedulable>(step);
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_EQ(verdicts[0].reason, "InvalidRequest");
  EXPECT_THAT(verdicts[0].message,
              HasSubstr("all devices that suit its ResourceClaim are for several claims at once "
                        "(allowMultipleAllocations), and Fairlead gives such devices to none: "
                        "fabric.io/pool/0, fabric.io/pool/1, fabric.io/pool/2 and 2 more"));
  AnswerAll(step);
  // One that is for one claim alone is enough.
  slice.devices[3].for_several = false;
  Put(slice);
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), SizeIs(1));
}

}  // namespace
}  // namespace fairlead::core::testing
