// A gang whose pods share a claim: all of them have to go where the first brings it.
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using testing::Cluster;

class ClaimGangTest : public ::testing::Test {
 protected:
  ClaimGangTest() {
    c_.Queue("q", -1);
    c_.state().UpsertDeviceObject(MakeDeviceClass("nic", {"device.driver == \"nic.io\""}));
    c_.state().UpsertDeviceObject(MakeClaim("shared", 2, "nic"));
  }
  void Node(const std::string& name, int64_t cores, int64_t devices) {
    c_.state().UpsertNode(MakeNode(name, 0, cores));
    c_.state().UpsertDeviceObject(MakeSlice(name, devices, "nic.io"));
  }
  void Gang(int pods) {
    c_.Group(model::testing::MakeGroup("ns", "gang", "q", pods));
    for (int i = 0; i < pods; ++i) {
      model::Pod pod = testing::Member(absl::StrCat("p", i), "gang");
      pod.spec.requests = {{"cpu", 2000}, {"memory", model::testing::kGiB}};
      pod.spec.resource_claims = {"shared"};
      c_.Pod(pod);
    }
  }
  std::string NodesOfGang(int pods) {
    c_.Run();
    std::string out;
    for (int i = 0; i < pods; ++i) {
      const state::PodRecord& pod = c_.state().pod(c_.state().FindPod("ns", absl::StrCat("p", i)));
      absl::StrAppend(&out, i == 0 ? "" : " ",
                      pod.node == state::kNoId ? "-" : c_.state().node(pod.node).name());
    }
    return out;
  }

  Cluster c_;
};

// The tightest node has room for three of the four.
TEST_F(ClaimGangTest, ANodeWithRoomForAllIsFound) {
  Node("a-tight", 7, 3);
  Node("b-tight", 7, 3);
  Node("roomy", 32, 3);
  Gang(4);
  EXPECT_EQ(NodesOfGang(4), "roomy roomy roomy roomy");
}

TEST_F(ClaimGangTest, NoNodeHasRoomForAll) {
  Node("a-tight", 7, 3);
  Node("no-devices", 32, 1);
  Gang(4);
  EXPECT_EQ(NodesOfGang(4), "- - - -");
}

}  // namespace
}  // namespace fairlead::engine
