// Devices that are given to no claim, and the order in which others are given.
#include "scheduler/state/left_out_devices.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "scheduler/state/device_state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeSlice;
using ::testing::ElementsAre;

class LeftOutDevicesTest : public testing::DeviceStateTest {
 protected:
  // The network cards of n1, of which these are for several claims at once.
  void PutCards(int64_t cards, std::initializer_list<size_t> for_several) {
    model::ResourceSlice slice = MakeSlice("n1", cards, "nic.io");
    for (const size_t card : for_several) slice.devices[card].for_several = true;
    state_.UpsertDeviceObject(slice);
  }
  PodId AddWith(const model::ResourceClaim& claim) {
    state_.UpsertDeviceObject(claim);
    return Add(claim.meta.name, {claim.meta.name});
  }
  std::string Everywhere(PodId pod) {
    return LeftOutEverywhere(state_.devices(), Spec(pod).requests);
  }
};

TEST_F(LeftOutDevicesTest, TheyCountAsNoCapacity) {
  PutCards(2, {0});
  const PodId one = AddWith(MakeClaim("one", 1, "nic"));
  EXPECT_TRUE(Suits(one, "n1"));
  EXPECT_FALSE(Counts(AddWith(MakeClaim("two", 2, "nic")), "n1"));
  model::ResourceClaim all = model::testing::AllOf(MakeClaim("all", 1, "nic"));
  EXPECT_FALSE(Suits(AddWith(all), "n1")) << "one of them is given to none";
  Place(one, "n1");
  EXPECT_THAT(Held("ns/one"), ElementsAre("nic.io/n1/1"));
}

TEST_F(LeftOutDevicesTest, WhatIsLeftOutEverywhereChangesWithTheDevices) {
  const PodId pod = AddWith(MakeClaim("c", 1, "nic"));
  EXPECT_EQ(Everywhere(pod), "");
  PutCards(2, {0, 1});
  EXPECT_EQ(Everywhere(pod),
            "all devices that suit its ResourceClaim are for several claims at once "
            "(allowMultipleAllocations), and Fairlead gives such devices to none: nic.io/n1/0, "
            "nic.io/n1/1");
  PutCards(2, {1});
  EXPECT_EQ(Everywhere(pod), "");
  PutCards(1, {0});
  EXPECT_NE(Everywhere(pod), "");
  // The class names other devices.
  state_.UpsertDeviceObject(
      model::testing::MakeDeviceClass("nic", {"!device.allowMultipleAllocations"}));
  EXPECT_EQ(Everywhere(pod), "");
  state_.UpsertDeviceObject(
      model::testing::MakeDeviceClass("nic", {"device.allowMultipleAllocations"}));
  EXPECT_NE(Everywhere(pod), "");
  state_.RemoveResourceSlice("n1-nic.io");
  EXPECT_EQ(Everywhere(pod), "");
}

TEST_F(LeftOutDevicesTest, AnAlternativeThatIsNotLeftOutIsEnough) {
  PutCards(1, {0});
  model::ResourceClaim claim = MakeClaim("c", 1, "nic");
  model::DeviceRequest way;
  way.name = "nic";
  way.device_class = "nic";
  claim.requests[0].first_available = {way};
  EXPECT_NE(Everywhere(AddWith(claim)), "");
  way.name = "gpu";
  way.device_class = testing::kGpuClass;
  claim.meta.name = "d";
  claim.requests[0].first_available.push_back(way);
  EXPECT_EQ(Everywhere(AddWith(claim)), "");
}

TEST_F(LeftOutDevicesTest, NothingIsLeftOutOfOtherResources) {
  PutCards(1, {0});
  for (const char* resource : {"cpu", "example.com/none", "deviceclass:unknown"}) {
    EXPECT_EQ(LeftOutOn(state_.devices(), "n1", resource), "") << resource;
  }
}

// ---- devices that are not ready when they are given

TEST_F(LeftOutDevicesTest, DevicesThatAreReadyAtOnceAreGivenFirst) {
  model::ResourceSlice cards = MakeSlice("n1", 3, "nic.io");
  for (const size_t waits : {0, 2}) cards.devices[waits].binding_conditions = {"Attached"};
  state_.UpsertDeviceObject(cards);
  // A pool of the same driver, later by name, in which nothing has to be waited for.
  model::ResourceSlice others = MakeSlice("n1", 1, "nic.io");
  others.meta.name = others.pool = "z";
  others.devices[0].name = "9";
  state_.UpsertDeviceObject(others);
  std::vector<std::string> order;
  for (const NodeDevice* device : state_.devices().inventory().DevicesOf("n1")) {
    if (device->driver == "nic.io")
      order.push_back(absl::StrCat(device->pool, device->device.name));
  }
  EXPECT_THAT(order, ElementsAre("z9", "n11", "n10", "n12"));
}

TEST_F(LeftOutDevicesTest, AnAllocationHasTheConditionsOfItsDevices) {
  model::ResourceSlice cards = MakeSlice("n1", 1, "nic.io");
  cards.devices[0].binding_conditions = {"Attached", "Powered"};
  cards.devices[0].binding_failure_conditions = {"Failed"};
  state_.UpsertDeviceObject(cards);
  Place(AddWith(MakeClaim("c", 1, "nic")), "n1");
  const model::ClaimAllocation allocation = state_.devices().AllocationOf("ns/c");
  ASSERT_EQ(allocation.devices.size(), 1u);
  EXPECT_THAT(allocation.devices[0].binding_conditions, ElementsAre("Attached", "Powered"));
  EXPECT_THAT(allocation.devices[0].binding_failure_conditions, ElementsAre("Failed"));
}

}  // namespace
}  // namespace fairlead::state
