// Claims that numbers of devices cannot express, in the decision loop: the writes for them, and
// that other decisions know which devices are free.
#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using model::AllocatedDevice;
using model::testing::Allocated;
using model::testing::AllOf;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kClass[] = "nic.io";

class ClaimChoiceTest : public NoHookTest {
 protected:
  ClaimChoiceTest() {
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    Put(MakeDeviceClass(kClass));
    AddNode("n1");
  }
  void AddNode(const std::string& name) {
    Put(MakeNode(name, 0));
    Put(MakeSlice(name, 2, kClass));
  }
  static model::ResourceClaim AllClaim(const std::string& name) {
    return AllOf(MakeClaim(name, 1, kClass));
  }
  static model::Pod Uses(model::Pod pod, const std::string& claim) {
    pod.spec.resource_claims = {claim};
    return pod;
  }
  static std::string VerdictIn(const StepResult& step) {
    const auto verdicts = Of<model::SetPodUnschedulable>(step);
    return verdicts.empty() ? "" : verdicts[0].message;
  }
};

TEST_F(ClaimChoiceTest, WhatNoNodeCanGiveIsNotBegun) {
  model::ResourceClaim claim = MakeClaim("c", 2, kClass);
  claim.constraints.push_back({{}, "nic.io/numa"});
  Put(claim);
  Put(Uses(PodBuilder("ns", "p").Queue("team"), "c"));
  const StepResult step = Step(1);
  EXPECT_THAT(Of<model::ReserveClaim>(step), IsEmpty());
  EXPECT_THAT(VerdictIn(step), HasSubstr("same nic.io/numa"));
}

TEST_F(ClaimChoiceTest, AGangForAllDevicesNeedsANodeForEachPod) {
  Put(MakeGroup("ns", "gang", "team", 2));
  for (const char* name : {"a", "b"}) {
    Put(AllClaim(name));
    Put(Uses(PodBuilder("ns", name).Queue("team").Group("gang"), name));
  }
  EXPECT_THAT(Of<model::ReserveClaim>(Step(1)), IsEmpty());
  AddNode("n2");
  const auto writes = Of<model::ReserveClaim>(Step(100));
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_NE(writes[0].allocation.node, writes[1].allocation.node);
  for (const model::ReserveClaim& write : writes) {
    const std::string& node = write.allocation.node;
    EXPECT_THAT(write.allocation.devices, ElementsAre(AllocatedDevice{"r", kClass, node, "0"},
                                                      AllocatedDevice{"r", kClass, node, "1"}));
  }
}

TEST_F(ClaimChoiceTest, TheSubRequestThatWasTakenIsWritten) {
  model::ResourceClaim claim = MakeClaim("c", 1, "");
  model::DeviceRequest three;
  three.name = "three";
  three.device_class = kClass;
  three.count = 3;
  model::DeviceRequest one = three;
  one.name = "one";
  one.count = 1;
  claim.requests[0].first_available = {three, one};
  Put(claim);
  Put(Uses(PodBuilder("ns", "p").Queue("team"), "c"));
  const auto writes = Of<model::ReserveClaim>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_THAT(writes[0].allocation.devices,
              ElementsAre(AllocatedDevice{"r/one", kClass, "n1", "0"}));
}

TEST_F(ClaimChoiceTest, ThePodThatHoldsOneOfThemGivesWayForAllOfThem) {
  Put(Allocated(MakeClaim("low", 1, kClass), "n1", {"0"}, kClass));
  Put(Uses(PodBuilder("ns", "low").Queue("team").Priority("low", 50).On("n1"), "low"));
  Put(AllClaim("all"));
  Put(Uses(PodBuilder("ns", "high").Queue("team").Priority("high", 90).Created(1), "all"));
  const auto evictions = Of<model::EvictPod>(Step(1));
  ASSERT_THAT(evictions, SizeIs(1));
  EXPECT_EQ(evictions[0].name, "low");
}

}  // namespace
}  // namespace fairlead::core::testing
