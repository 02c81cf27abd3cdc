// Devices that a pod was promised stay its own until it is bound, whatever other pods would take.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::Allocated;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using verdict::Code;

// A node with four devices. Devices 1 and 3 are fast; class "any" gives each of them.
class ClaimPromisesTest : public ::testing::Test {
 protected:
  ClaimPromisesTest() {
    c_.Queue("q", -1);
    c_.state().UpsertNode(model::testing::MakeNode("n1", 0, 32));
    model::ResourceSlice slice = model::testing::MakeSlice("n1", 4, "nic.io");
    for (const size_t fast : {1, 3}) slice.devices[fast].attributes["fast"].value = true;
    for (const size_t slow : {0, 2}) slice.devices[slow].attributes["fast"].value = false;
    c_.state().UpsertDeviceObject(slice);
    c_.state().UpsertDeviceObject(MakeDeviceClass("any"));
    c_.state().UpsertDeviceObject(
        MakeDeviceClass("fast", {"device.attributes[\"nic.io\"].fast == true"}));
  }
  // Of the claim of its name.
  static model::testing::PodBuilder Uses(absl::string_view name) {
    return model::testing::PodBuilder("ns", name).Queue("q").Preemptible(true);
  }
  void Pod(model::Pod pod) {
    pod.spec.resource_claims = {pod.meta.name};
    c_.Pod(pod);
  }
  void Remove(const std::string& name) {
    c_.state().RemovePod("ns", name, "");
    c_.state().RemoveResourceClaim("ns", name);
  }
  const std::vector<std::string>& DevicesOf(absl::string_view pod) {
    return c_.state().devices().Find(absl::StrCat("ns/", pod))->devices;
  }

  Cluster c_;
};

// "old" runs on a fast device that "urgent" needs, and is moved. Its controller makes "new", which
// finds one slow and one fast device free, and fits beside "urgent" only when "old" has gone. If it
// took the fast one, it would be moved for "urgent" as well, and so on.
TEST_F(ClaimPromisesTest, WhatComesForAMovedPodLeavesThePromisedDevices) {
  c_.state().UpsertDeviceObject(Allocated(MakeClaim("old", 2, "any"), "n1", {"0", "1"}, "nic.io"));
  c_.state().UpsertDeviceObject(MakeClaim("urgent", 2, "fast"));
  c_.state().UpsertDeviceObject(MakeClaim("new", 2, "any"));
  Pod(Uses("old").On("n1"));
  Pod(Uses("urgent").Priority("high", 100));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre(::testing::HasSubstr(":old>n1")));
  ASSERT_THAT(c_.Promised(), ElementsAre("urgent>n1"));

  Pod(Uses("old").On("n1").Deleting());
  Pod(Uses("new").Created(101));
  c_.Run(102);
  EXPECT_THAT(c_.Bound(), IsEmpty());
  EXPECT_THAT(c_.Promised(), ElementsAre("new>n1", "urgent>n1"));

  Remove("old");
  c_.Run(103);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  EXPECT_THAT(c_.Bound(), ElementsAre("new>n1", "urgent>n1"));
  EXPECT_THAT(DevicesOf("urgent"), ElementsAre("nic.io/n1/1", "nic.io/n1/3"));
  EXPECT_THAT(DevicesOf("new"), ElementsAre("nic.io/n1/0", "nic.io/n1/2"));
}

// The first device would suit it, but the promised pod can do with no other.
TEST_F(ClaimPromisesTest, APodIsPlacedAtOnceOnDevicesThatWereNotPromised) {
  c_.state().UpsertDeviceObject(Allocated(MakeClaim("old", 1, "any"), "n1", {"3"}, "nic.io"));
  c_.state().UpsertDeviceObject(Allocated(MakeClaim("rests", 1, "any"), "n1", {"0"}, "nic.io"));
  c_.state().UpsertDeviceObject(MakeClaim("urgent", 2, "fast"));
  c_.state().UpsertDeviceObject(MakeClaim("new", 1, "any"));
  Pod(Uses("rests").On("n1").Priority("high", 100));
  Pod(Uses("old").On("n1").Deleting());
  Pod(Uses("urgent").Priority("high", 100));
  Pod(Uses("new").Created(1));
  c_.Run(100);
  EXPECT_THAT(c_.Promised(), ElementsAre("urgent>n1"));
  EXPECT_THAT(c_.Bound(), ElementsAre("new>n1"));
  EXPECT_THAT(DevicesOf("new"), ElementsAre("nic.io/n1/2"));
}

}  // namespace
}  // namespace fairlead::engine
