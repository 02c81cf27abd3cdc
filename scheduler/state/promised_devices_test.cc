// Devices that promised pods wait for are left to them by pods that are placed now.
#include "scheduler/state/promised_devices.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "scheduler/state/device_state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::Allocated;
using model::testing::MakeClaim;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kGpuClass;

// GPUs 0 and 2 of a node have NUMA node 0, the others 1.
class PromisedDevicesTest : public testing::DeviceStateTest {
 protected:
  PromisedDevicesTest() {
    state_.UpsertDeviceObject(model::testing::MakeDeviceClass(
        "even", {"device.attributes[\"gpu.nvidia.com\"].numa == 0"}));
    state_.UpsertDeviceObject(model::testing::MakeDeviceClass("any"));
  }
  // A pod of the claim's name.
  PodId Waits(const model::ResourceClaim& claim) {
    state_.UpsertDeviceObject(claim);
    return Add(claim.meta.name, {claim.meta.name});
  }
  // The claim's pod terminates.
  void Ends(const char* name, const std::vector<std::string>& devices) {
    state_.UpsertDeviceObject(
        Allocated(MakeClaim(name, static_cast<int64_t>(devices.size()), "any"), "n0", devices));
    model::Pod pod = PodBuilder("ns", name).Queue("q").On("n0").Deleting();
    pod.spec.resource_claims = {name};
    state_.UpsertPod(pod);
  }
  const NodeInfo& Node() { return state_.node(state_.FindNode("n0")); }
};

TEST_F(PromisedDevicesTest, ThePlacedPodTakesOthersThanTheFirst) {
  Ends("ends", {"2"});
  const PodId promised = Waits(MakeClaim("promised", 2, "even"));
  const PodId placed = Waits(MakeClaim("placed", 1, "any"));
  Transaction txn(state_);
  txn.Pipeline(promised, Node().id);
  EXPECT_THAT(Held("ns/promised"), IsEmpty());
  const auto mark = txn.Mark();
  txn.Allocate(placed, Node().id);
  EXPECT_THAT(Held("ns/placed"), ElementsAre("gpu.nvidia.com/n0/1"));
  txn.RollbackTo(mark);
  EXPECT_THAT(Held("ns/placed"), IsEmpty());
  txn.RollbackTo(0);
  txn.Allocate(placed, Node().id);
  EXPECT_THAT(Held("ns/placed"), ElementsAre("gpu.nvidia.com/n0/0")) << "nothing is promised";
}

TEST_F(PromisedDevicesTest, WhatItHadLastIsLeftIfItIsPromised) {
  const PodId placed = Waits(MakeClaim("placed", 1, "any"));
  {
    Transaction txn(state_);
    txn.Allocate(placed, Node().id);
    ASSERT_THAT(Held("ns/placed"), ElementsAre("gpu.nvidia.com/n0/0"));
    txn.Commit();
  }
  state_.ForgetBinding(placed);
  Ends("ends", {"2"});
  const PodId promised = Waits(MakeClaim("promised", 2, "even"));
  Transaction txn(state_);
  txn.Pipeline(promised, Node().id);
  txn.Allocate(placed, Node().id);
  EXPECT_THAT(Held("ns/placed"), ElementsAre("gpu.nvidia.com/n0/1"));
}

// A pod that is on its node already gets what there is.
TEST_F(PromisedDevicesTest, IfBothAreImpossibleThePlacedPodGetsItsDevices) {
  Ends("ends", {"2", "1", "3"});
  const PodId promised = Waits(MakeClaim("promised", 2, "even"));
  const PodId placed = Waits(MakeClaim("placed", 1, "any"));
  Transaction txn(state_);
  txn.Pipeline(promised, Node().id);
  txn.Allocate(placed, Node().id);
  EXPECT_THAT(Held("ns/placed"), ElementsAre("gpu.nvidia.com/n0/0"));
}

TEST_F(PromisedDevicesTest, PromisesAreThoseOfTheNodeAndOfThisCycle) {
  const PodId promised = Waits(MakeClaim("promised", 2, "even"));
  EXPECT_THAT(PromisesOn(state_, Node(), {}).demands, IsEmpty());
  Transaction txn(state_);
  txn.Pipeline(promised, state_.FindNode("n1"));
  EXPECT_THAT(PromisesOn(state_, Node(), {}).demands, IsEmpty());
  EXPECT_EQ(PromisesOn(state_, state_.node(state_.FindNode("n1")), {}).demands.size(), 1u);
}

// It could be promised on each of its nodes.
TEST_F(PromisedDevicesTest, ADeviceOfSeveralNodesIsNotComing) {
  Ends("ends", {"2"});
  const auto device = [&]() -> const NodeDevice& {
    return *state_.devices().inventory().DevicesOf("n0")[2];
  };
  EXPECT_TRUE(IsComing(state_, device()));
  model::ResourceSlice slice = testing::MakeNumaSlice("n0");
  slice.nodes = {"", true, {}};
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(IsComing(state_, device()));
  state_.RemovePod("ns", "ends", "");
  state_.RemoveResourceClaim("ns", "ends");
  EXPECT_TRUE(IsComing(state_, device())) << "it is free";
}

// Nor do partitions of other nodes leave their counters to what is promised.
TEST_F(PromisedDevicesTest, CountersThatAnotherNodesPartitionUsesAreNotPromised) {
  model::ResourceSlice slice = model::testing::MakeSlice("shared", 2);
  slice.nodes = {};
  slice.per_device = true;
  slice.counters_milli["lanes"]["n"] = 1000;
  for (size_t i = 0; i < 2; ++i) {
    slice.devices[i].nodes.name = absl::StrCat("n", i);
    slice.devices[i].uses = {{"lanes", "n", 1000}};
  }
  state_.UpsertDeviceObject(slice);
  state_.UpsertDeviceObject(model::testing::MakeDeviceClass(
      "part", {"device.driver == \"gpu.nvidia.com\" && !(\"numa\" in "
               "device.attributes[\"gpu.nvidia.com\"])"}));
  const PodId on_n0 = Waits(MakeClaim("on-n0", 1, "part"));
  const PodId on_n1 = Waits(MakeClaim("on-n1", 1, "part"));
  const auto can_have = [&](const NodeDevice& device) { return IsComing(state_, device); };
  const auto choice = [&](PodId pod, const char* node) {
    return PlaceDevices(state_.devices(), node, Spec(pod).requests, can_have).outcome;
  };
  EXPECT_EQ(choice(on_n1, "n1"), ChoiceOutcome::kFound);
  Place(on_n0, "n0");
  ASSERT_THAT(Held("ns/on-n0"), ElementsAre("gpu.nvidia.com/shared/0"));
  EXPECT_EQ(choice(on_n1, "n1"), ChoiceOutcome::kNone);
  Transaction txn(state_);
  txn.Evict(on_n0);
  EXPECT_EQ(choice(on_n1, "n1"), ChoiceOutcome::kNone) << "it waits until they are free";
}

// Not even by a pod that could wait.
TEST_F(PromisedDevicesTest, AClaimThatIsKeptIsNotComing) {
  Ends("ends", {"2"});
  const NodeDevice& device = *state_.devices().inventory().DevicesOf("n0")[2];
  EXPECT_TRUE(IsComing(state_, device));
  EXPECT_TRUE(PromisesOn(state_, Node(), {"ns/ends"}).Keeps(state_.devices(), device));
  EXPECT_FALSE(PromisesOn(state_, Node(), {}).Keeps(state_.devices(), device));
}

}  // namespace
}  // namespace fairlead::state
