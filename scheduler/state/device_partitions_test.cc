// Partitions with shared counters, admin access, distinctAttribute and taints of devices in
// ClusterState.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/device_state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::Allocated;
using model::testing::AllOf;
using model::testing::MakeClaim;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kGpuClass;
using testing::MakeNumaSlice;
using ::testing::SizeIs;

constexpr char kHalves[] = "half.nvidia.com";

// Two GPUs of 40 (memory) each, whole or in halves: devices "0", "0-a", "0-b", "1", "1-a", "1-b".
// Without the counters, which are in a slice of their own.
model::ResourceSlice MakePartitions(absl::string_view node) {
  model::ResourceSlice slice = MakeSlice(node, 0);
  slice.slice_count = 2;
  for (const char* gpu : {"0", "1"}) {
    for (const char* part : {"", "-a", "-b"}) {
      model::Device& device = slice.devices.emplace_back();
      device.name = absl::StrCat(gpu, part);
      const bool whole = *part == '\0';
      device.attributes["half"].value = !whole;
      device.uses = {{absl::StrCat("gpu-", gpu), "memory", whole ? 40'000 : 20'000}};
    }
  }
  return slice;
}

model::ResourceSlice MakeCounters(absl::string_view node) {
  model::ResourceSlice slice = MakePartitions(node);
  slice.meta.name += "-counters";
  slice.devices.clear();
  slice.counters_milli = {{"gpu-0", {{"memory", 40'000}}}, {"gpu-1", {{"memory", 40'000}}}};
  return slice;
}

class DevicePartitionsTest : public testing::DeviceStateTest {
 protected:
  DevicePartitionsTest() {
    state_.UpsertNode(MakeNode("p0", 0));
    state_.UpsertDeviceObject(MakePartitions("p0"));
    state_.UpsertDeviceObject(MakeCounters("p0"));
    state_.UpsertDeviceObject(model::testing::MakeDeviceClass(
        kHalves, {"device.attributes[\"gpu.nvidia.com\"].half == true"}));
  }
  PodId AddWith(const model::ResourceClaim& claim) {
    state_.UpsertDeviceObject(claim);
    return Add(claim.meta.name, {claim.meta.name});
  }
  PodId AddHalves(const char* name, int64_t count) {
    return AddWith(MakeClaim(name, count, kHalves, "q"));
  }
  // Of a GPU of any kind; the first that fits is a whole one.
  PodId AddAny(const char* name, int64_t count) {
    return AddWith(MakeClaim(name, count, kGpuClass, "q"));
  }
};

TEST_F(DevicePartitionsTest, WhatAPartitionUsesIsNotThereForTheOthersOfItsDevice) {
  EXPECT_EQ(state_.devices().inventory().CountGpus("p0"), 2);
  const PodId half = AddHalves("half", 1), two = AddAny("two", 2), one = AddAny("one", 1),
              three = AddHalves("three", 3), last = AddHalves("last", 1);
  EXPECT_TRUE(Suits(two, "p0"));
  EXPECT_TRUE(Suits(three, "p0"));
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    txn.Allocate(two, state_.FindNode("p0"));
    EXPECT_THAT(Held("ns/two"), SizeIs(2));
    EXPECT_FALSE(Suits(half, "p0"));
  }
  EXPECT_EQ(state_.Dump(), before);
  Place(half, "p0");
  EXPECT_THAT(Held("ns/half"), ElementsAre("gpu.nvidia.com/p0/0-a"));
  // A whole GPU is left, or a half and a whole one.
  EXPECT_TRUE(Suits(two, "p0"));
  EXPECT_TRUE(Suits(three, "p0"));
  Place(one, "p0");
  EXPECT_THAT(Held("ns/one"), ElementsAre("gpu.nvidia.com/p0/0-b"));
  Place(last, "p0");
  EXPECT_THAT(Held("ns/last"), ElementsAre("gpu.nvidia.com/p0/1-a"));
  EXPECT_FALSE(Suits(two, "p0"));
  EXPECT_FALSE(Suits(three, "p0"));
}

TEST_F(DevicePartitionsTest, WhatTheApiServerShowsCounts) {
  const PodId half = AddHalves("half", 4);
  EXPECT_TRUE(Suits(half, "p0"));
  // Another scheduler has taken a whole GPU.
  state_.UpsertDeviceObject(Allocated(MakeClaim("other", 1, kGpuClass, "q"), "p0", {"1"}));
  EXPECT_FALSE(Suits(half, "p0"));
  EXPECT_TRUE(Suits(AddHalves("two", 2), "p0"));
  // Too much was given away: nothing is left, and what is held stays dealt.
  state_.UpsertDeviceObject(Allocated(MakeClaim("more", 2, kGpuClass, "q"), "p0", {"0", "0-a"}));
  EXPECT_FALSE(Suits(AddHalves("one", 1), "p0"));
  state_.RemoveResourceClaim("ns", "more");
  state_.RemoveResourceClaim("ns", "other");
  EXPECT_TRUE(Suits(half, "p0"));
}

TEST_F(DevicePartitionsTest, WithoutACounterThatIsUsedThePoolGivesNothing) {
  const PodId half = AddHalves("half", 1);
  const std::string counters = MakeCounters("p0").meta.name;
  state_.RemoveResourceSlice(counters);
  EXPECT_FALSE(Suits(half, "p0"));
  EXPECT_EQ(state_.devices().inventory().CountGpus("p0"), 0);
  model::ResourceSlice slice = MakeCounters("p0");
  slice.counters_milli.erase("gpu-0");
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(Suits(half, "p0")) << "kube-scheduler takes no device of such a pool either";
  // While slices are missing, the counters may be in one of them.
  slice.slice_count = 3;
  state_.UpsertDeviceObject(slice);
  Place(half, "p0");
  EXPECT_THAT(Held("ns/half"), ElementsAre("gpu.nvidia.com/p0/1-a"));
}

TEST_F(DevicePartitionsTest, WhatIsUsedOnAnotherNodeIsNotThere) {
  // A half of GPU 1 for n1, which has its own slice of p0's pool.
  model::ResourceSlice other = MakePartitions("n1");
  other.pool = MakePartitions("p0").pool;
  other.meta.name = "elsewhere";
  std::erase_if(other.devices, [](const auto& device) { return device.name != "1-a"; });
  other.devices[0].name = "1-c";
  state_.UpsertDeviceObject(other);
  EXPECT_FALSE(Suits(AddHalves("early", 1), "p0")) << "the others announce fewer slices";
  for (model::ResourceSlice slice : {MakePartitions("p0"), MakeCounters("p0"), other}) {
    slice.slice_count = 3;
    state_.UpsertDeviceObject(slice);
  }
  const PodId there = AddHalves("there", 1), four = AddHalves("four", 4);
  EXPECT_TRUE(Suits(four, "p0"));
  EXPECT_TRUE(Suits(there, "n1"));
  Place(there, "n1");
  EXPECT_THAT(Held("ns/there"), ElementsAre("gpu.nvidia.com/p0/1-c"));
  EXPECT_FALSE(Suits(four, "p0"));
  EXPECT_TRUE(Suits(AddHalves("three", 3), "p0"));
}

// The promised pod waits for a whole GPU to be given back; until then its counters are used.
TEST_F(DevicePartitionsTest, WhatIsPromisedUsesNoCountersThatAPlacedPodNeedsNow) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("ends", 1, kGpuClass, "q"), "p0", {"0"}));
  model::Pod ends = model::testing::PodBuilder("ns", "ends").Queue("q").On("p0").Deleting();
  ends.spec.resource_claims = {"ends"};
  state_.UpsertPod(ends);
  const PodId promised = AddHalves("promised", 1);
  const PodId two = AddHalves("two", 2);
  const PodId late = AddHalves("late", 1);
  Transaction txn(state_);
  txn.Pipeline(promised, state_.FindNode("p0"));
  txn.Allocate(two, state_.FindNode("p0"));
  EXPECT_THAT(Held("ns/two"), ElementsAre("gpu.nvidia.com/p0/1-a", "gpu.nvidia.com/p0/1-b"));
  txn.Allocate(late, state_.FindNode("p0"));
  EXPECT_THAT(Held("ns/late"), IsEmpty());
}

TEST_F(DevicePartitionsTest, AdminAccessTakesNothingAndIsNotCharged) {
  model::ResourceClaim watch = AllOf(MakeClaim("watch", 1, kGpuClass, "q"));
  watch.requests[0].admin_access = true;
  const PodId admin = AddWith(watch);
  EXPECT_EQ(Charge(admin), 0);
  Place(AddAny("users", 4), "n0");
  EXPECT_FALSE(Suits(AddAny("more", 1), "n0"));
  EXPECT_TRUE(Suits(admin, "n0"));
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    txn.Allocate(admin, state_.FindNode("n0"));
    EXPECT_THAT(Held("ns/watch"), SizeIs(4));
  }
  EXPECT_EQ(state_.Dump(), before);
  Place(admin, "n0");
  EXPECT_THAT(Held("ns/users"), SizeIs(4));
  const model::ClaimAllocation allocation = state_.devices().AllocationOf("ns/watch");
  EXPECT_EQ(allocation.node, "n0");
  ASSERT_THAT(allocation.devices, SizeIs(4));
  for (const model::AllocatedDevice& device : allocation.devices) {
    EXPECT_TRUE(device.admin_access) << device.device;
  }
  // As the API server shows it, to this process or to the next one.
  watch.allocated = true;
  watch.devices = allocation.devices;
  state_.UpsertDeviceObject(watch);
  EXPECT_EQ(Charge(admin), 0);
  state_.RemoveResourceClaim("ns", "users");
  EXPECT_TRUE(Suits(AddAny("next", 4), "n0"));
}

TEST_F(DevicePartitionsTest, AnyNumberOfAdminsLookAtOneDevice) {
  for (int i = 0; i < 8; ++i) {
    model::ResourceClaim watch = MakeClaim(absl::StrCat("watch-", i), 1, "nic", "q");
    watch.requests[0].admin_access = true;
    const PodId admin = AddWith(watch);
    EXPECT_FALSE(Suits(admin, "n0")) << "it has no such device";
    ASSERT_TRUE(Suits(admin, "n1"));
    Place(admin, "n1");
    EXPECT_THAT(Held(absl::StrCat("ns/watch-", i).c_str()), SizeIs(1));
  }
  EXPECT_TRUE(Suits(AddWith(MakeClaim("user", 1, "nic", "q")), "n1"));
}

TEST_F(DevicePartitionsTest, OfManyDevicesClaimsAreNotCountedOneByOne) {
  state_.UpsertNode(MakeNode("many", 0));
  state_.UpsertDeviceObject(MakeSlice("many", 200));
  model::ResourceClaim claim = MakeClaim("pair", 2, kGpuClass, "q");
  claim.constraints.push_back({{}, "gpu.nvidia.com/numa"});
  EXPECT_FALSE(Counts(AddWith(claim), "many")) << "no device has the attribute";
  claim.meta.name = claim.meta.uid = "two";
  claim.constraints = {};
  claim.requests.push_back(claim.requests[0]);
  claim.requests[1].name = "s";
  claim.requests[1].all = true;
  claim.requests[0].count = claim.requests[1].count = 1;
  AddWith(claim);
  const auto counts = state_.devices().CountDevices("many");
  EXPECT_TRUE(std::none_of(counts.begin(), counts.end(), [](const auto& entry) {
    return IsShape(entry.first);
  })) << "no claim can have all devices and one more";
  claim.meta.name = claim.meta.uid = "one";
  claim.requests[1].all = false;
  claim.constraints = {{{"s"}, "gpu.nvidia.com/index"}};
  model::ResourceSlice slice = MakeSlice("many", 200);
  for (model::Device& device : slice.devices) device.attributes["index"].value = int64_t{1};
  state_.UpsertDeviceObject(slice);
  const PodId one = AddWith(claim);
  EXPECT_TRUE(Suits(one, "many"));
  for (const auto& [name, count] : state_.devices().CountDevices("many")) {
    EXPECT_EQ(count, 200) << name;
  }
}

TEST_F(DevicePartitionsTest, DistinctValues) {
  model::ResourceClaim claim = MakeClaim("two", 2, kGpuClass, "q");
  claim.constraints.push_back({{}, "gpu.nvidia.com/numa", true});
  const PodId two = AddWith(claim);
  Place(two, "n0");
  EXPECT_THAT(Held("ns/two"), ElementsAre("gpu.nvidia.com/n0/0", "gpu.nvidia.com/n0/1"));
  claim.meta.name = claim.meta.uid = "three";
  claim.requests[0].count = 3;
  EXPECT_FALSE(Suits(AddWith(claim), "n1")) << "there are two values";
}

TEST_F(DevicePartitionsTest, ATaintKeepsAwayWhoDoesNotTolerateIt) {
  model::ResourceSlice slice = MakeNumaSlice("n0");
  for (model::Device& device : slice.devices) device.taints = {{"broken", "yes", "NoExecute"}};
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(Suits(AddAny("none", 1), "n0"));
  int at = 0;
  const auto tolerating = [&](model::DeviceToleration toleration) {
    model::ResourceClaim claim = MakeClaim(absl::StrCat("t", at++), 1, kGpuClass, "q");
    claim.requests[0].tolerates = {std::move(toleration)};
    return AddWith(claim);
  };
  EXPECT_TRUE(Suits(tolerating({"broken", "", "", true}), "n0"));
  EXPECT_TRUE(Suits(tolerating({"", "", "", true}), "n0"));
  EXPECT_TRUE(Suits(tolerating({"broken", "yes", "NoExecute", false}), "n0"));
  EXPECT_FALSE(Suits(tolerating({"broken", "no", "", false}), "n0"));
  EXPECT_FALSE(Suits(tolerating({"slow", "", "", true}), "n0"));
  EXPECT_FALSE(Suits(tolerating({"broken", "", "NoSchedule", true}), "n0"));
  EXPECT_TRUE(Suits(AddAny("elsewhere", 1), "n1"));
}

}  // namespace
}  // namespace fairlead::state
