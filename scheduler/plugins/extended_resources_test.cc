// Extended resources that device classes give: the filter says which node can give them.
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using model::testing::Allocated;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;

constexpr char kFpga[] = "example.com/fpga";
constexpr char kHca[] = "example.com/hca";

// Nodes "claim" with two FPGAs by DRA, "plugin" with two by device plugin, "bare" without.
class ExtendedResourcesTest : public PluginTest {
 protected:
  ExtendedResourcesTest() {
    AddNode(MakeNode("claim", 0));
    AddNode(MakeNode("bare", 0));
    model::Node plugin = MakeNode("plugin", 0);
    model::Set(plugin.allocatable, kFpga, 2);
    AddNode(std::move(plugin));
    state_.UpsertDeviceObject(MakeSlice("claim", 2, "fpga.io"));
    model::DeviceClass gives = MakeDeviceClass("fpga", {"device.driver == \"fpga.io\""});
    gives.extended_resource = kFpga;
    state_.UpsertDeviceObject(gives);
  }
  void Wait(int64_t fpgas) {
    model::PodSpec spec;
    spec.requests = {{kFpga, fpgas}};
    Waiting(std::move(spec));
  }
  std::unique_ptr<framework::Framework> devices_ = Only("DynamicResources");
  std::unique_ptr<framework::Framework> amounts_ = Only("NodeResourcesFit");
};

TEST_F(ExtendedResourcesTest, EitherKindOfNodeGivesThem) {
  Wait(2);
  for (const char* node : {"claim", "plugin"}) {
    EXPECT_EQ(Why(*devices_, node), "");
    EXPECT_EQ(Why(*amounts_, node), "");
  }
  EXPECT_EQ(Why(*devices_, "bare"), "U resourceclaim not available on the node");
  EXPECT_EQ(Why(*amounts_, "bare"), "X Insufficient example.com/fpga");
  Wait(3);
  for (const char* node : {"claim", "plugin"}) {
    EXPECT_EQ(Why(*amounts_, node), "X Insufficient example.com/fpga");
  }
}

// Claims of other pods are no amount of the resource.
TEST_F(ExtendedResourcesTest, DevicesOfOtherClaimsAreNotFree) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 1, "fpga"), "claim", {"0"}, "fpga.io"));
  Wait(2);
  EXPECT_EQ(Why(*amounts_, "claim"), "");
  EXPECT_EQ(Why(*devices_, "claim"), "U resourceclaim not available on the node");
  EXPECT_EQ(Why(*devices_, "plugin"), "");
  Wait(1);
  EXPECT_EQ(Why(*devices_, "claim"), "");
}

TEST_F(ExtendedResourcesTest, PromisedDevicesAreNotFree) {
  model::Pod promised = PodBuilder("ns", "promised");
  model::Set(promised.spec.requests, kFpga, 1);
  AddPod(promised);
  Wait(2);
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("claim"));
  EXPECT_EQ(Why(*devices_, "claim"), "U resourceclaim not available on the node");
}

TEST_F(ExtendedResourcesTest, ANodeThatGivesSomeOfThemEachWayIsRefused) {
  model::DeviceClass gives = MakeDeviceClass("hca", {"device.driver == \"hca.io\""});
  gives.extended_resource = kHca;
  state_.UpsertDeviceObject(gives);
  state_.UpsertDeviceObject(MakeSlice("plugin", 1, "hca.io"));
  model::PodSpec spec;
  spec.requests = {{kFpga, 1}, {kHca, 1}};
  Waiting(std::move(spec));
  EXPECT_EQ(Why(*devices_, "plugin"),
            "X node(s) have some of the pod's extended resources by device plugin and others by "
            "DRA");
}

TEST_F(ExtendedResourcesTest, AShareOfAGpuNeedsADevicePlugin) {
  state_.UpsertDeviceObject(MakeSlice("claim", 2));
  model::DeviceClass gives =
      MakeDeviceClass("gpu.nvidia.com", {"device.driver == \"gpu.nvidia.com\""});
  gives.extended_resource = model::kGpuName;
  state_.UpsertDeviceObject(gives);
  AddPod(PodBuilder("ns", "whole").Gpus(1));  // by whom the node has GPUs
  ASSERT_EQ(state_.node(state_.FindNode("claim")).allocatable[model::kGpu], 2000);
  model::PodSpec spec;
  spec.gpu_share.fraction_milli = 500;
  Waiting(std::move(spec));
  EXPECT_EQ(Why(*OnlyForShares("GpuKind"), "claim"),
            "X fractional/shared GPU pods are not yet supported on DRA-only nodes");
}

}  // namespace
}  // namespace fairlead::plugins
