// Devices of nodes that are not there yet: what is promised, and what drivers publish.
#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/device_state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using testing::DeviceStateTest;
using testing::kGpuClass;

std::shared_ptr<const model::NodeDevices> Promise(const std::vector<model::ResourceSlice>& slices) {
  auto devices = std::make_shared<model::NodeDevices>();
  for (const model::ResourceSlice& slice : slices) model::AddPool({&slice}, *devices);
  return devices;
}

class OrderedDevicesTest : public DeviceStateTest {
 protected:
  static model::Node Expected(const std::string& name, int64_t devices) {
    model::Node node = MakeNode(name, 0);
    node.devices = Promise({MakeSlice("any", devices)});
    node.meta.labels.Set(model::kNodeRequestLabel, name);
    return node;
  }
  PodId Ask(const std::string& name, int64_t devices) {
    state_.UpsertDeviceObject(MakeClaim("c-" + name, devices, kGpuClass, "q"));
    return Add(name, {"c-" + name});
  }
  void Promote(const std::string& name) {
    model::Node real = MakeNode(name, 0);
    real.meta.labels.Set(model::kNodeRequestLabel, name);
    state_.UpsertNode(real);
  }
  int64_t Free(const std::string& node) {
    return static_cast<int64_t>(state_.devices().inventory().DevicesOf(node).size());
  }
};

TEST_F(OrderedDevicesTest, ANodeHasWhatIsPromisedUntilItIsUsable) {
  const PodId pod = Ask("p", 6);
  EXPECT_FALSE(Suits(pod, "n0"));
  state_.UpsertOrderedNode(Expected("fl-1", 8), "fl-1");
  EXPECT_TRUE(Suits(pod, "fl-1"));
  EXPECT_FALSE(state_.UpsertOrderedNode(Expected("fl-1", 8), "fl-1").Any()) << "it is the same";
  {
    Transaction txn(state_);
    txn.Pipeline(pod, state_.FindNode("fl-1"));
    txn.Commit();
  }
  EXPECT_TRUE(Held("ns/c-p").empty()) << "promised devices are given to no pod";
  // It registers, and its driver publishes one after the other: the promise stands.
  Promote("fl-1");
  state_.UpsertDeviceObject(MakeSlice("fl-1", 2));
  EXPECT_EQ(Free("fl-1"), 8);
  EXPECT_EQ(state_.CheckConsistency(), "");
  state_.UpsertDeviceObject(MakeSlice("fl-1", 7));
  state_.SetNodeUsable(state_.FindNode("fl-1"), true);
  EXPECT_EQ(Free("fl-1"), 7) << "it counts what there is";
  EXPECT_EQ(state_.devices().inventory().DevicesOf("fl-1")[0]->pool, "fl-1");
}

TEST_F(OrderedDevicesTest, NothingIsLeftOfAnOrderThatIsTakenBack) {
  const std::string before = state_.Dump();
  state_.UpsertOrderedNode(Expected("fl-1", 8), "fl-1");
  state_.UpsertOrderedNode(Expected("fl-1", 3), "fl-1");
  EXPECT_EQ(Free("fl-1"), 3);
  state_.RemoveOrderedNode("fl-1");
  EXPECT_EQ(Free("fl-1"), 0);
  EXPECT_EQ(state_.Dump(), before);
}

TEST_F(OrderedDevicesTest, ANodeOfAWhatIfHasDevicesOfItsOwn) {
  const PodId pod = Ask("p", 2);
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    model::Node like = MakeNode("v", 0);
    like.devices = Promise({MakeSlice("any", 3)});
    const NodeId one = txn.AddNode(like), other = txn.AddNode(like);
    const std::string name = state_.node(one).name();
    EXPECT_EQ(Free(name), 3);
    const PodClassId wanted = state_.pod(pod).pod_class;
    EXPECT_TRUE(state_.pod_class(wanted).requests.FitsIn(state_.node(one).Future()));
    txn.Pipeline(txn.AddPod(wanted), one);
    EXPECT_FALSE(state_.pod_class(wanted).requests.FitsIn(state_.node(one).Future()));
    EXPECT_TRUE(state_.pod_class(wanted).requests.FitsIn(state_.node(other).Future()));
    EXPECT_EQ(state_.CheckConsistency(), "");
  }
  EXPECT_EQ(state_.Dump(), before);
  EXPECT_TRUE(state_.devices().inventory().DevicesOf("~00000000").empty());
}

TEST_F(OrderedDevicesTest, OnlyWholePoolsOfOneNodeSayWhatANodeBrings) {
  const DeviceInventory& inventory = state_.devices().inventory();
  EXPECT_EQ(inventory.Published("nowhere"), nullptr);
  ASSERT_NE(inventory.Published("n1"), nullptr);
  EXPECT_EQ(model::DescribeDevices(*inventory.Published("n1")), "4 x gpu.nvidia.com, 1 x nic.io");
  // Slices are missing.
  model::ResourceSlice part = MakeSlice("n1", 2, "part.io");
  part.slice_count = 2;
  state_.UpsertDeviceObject(part);
  EXPECT_EQ(inventory.Published("n1"), nullptr);
  part.meta.name += "-more";
  part.devices[0].name = "2";
  part.devices[1].name = "3";
  state_.UpsertDeviceObject(part);
  ASSERT_NE(inventory.Published("n1"), nullptr);
  EXPECT_EQ(model::CountByDriver(*inventory.Published("n1")).at("part.io"), 4);
  // A pool of all nodes is not of this one.
  model::ResourceSlice fabric = MakeSlice("fabric", 5, "fabric.io");
  fabric.nodes = {};
  fabric.nodes.all = true;
  state_.UpsertDeviceObject(fabric);
  ASSERT_NE(inventory.Published("n1"), nullptr);
  EXPECT_EQ(inventory.Published("n1")->shared_pools,
            (std::vector<std::string>{"fabric.io/fabric"}));
  EXPECT_FALSE(model::CountByDriver(*inventory.Published("n1")).contains("fabric.io"));
  EXPECT_EQ(inventory.NodeOfSlice("n1-gpu.nvidia.com"), "n1");
  EXPECT_EQ(inventory.NodeOfSlice("fabric-fabric.io"), "");
  EXPECT_EQ(inventory.NodeOfSlice("none"), "");
}

// Partitions are promised with the counters that they share.
TEST_F(OrderedDevicesTest, PartitionsThatArePromisedShareTheirCounters) {
  model::ResourceSlice parted = MakeSlice("n0", 3);
  parted.meta.name = "parted";
  parted.pool = "parted";
  parted.counters_milli["gpu"]["slices"] = 2000;
  for (model::Device& device : parted.devices) device.uses = {{"gpu", "slices", 1000}};
  model::Node node = MakeNode("fl-1", 0);
  node.devices = Promise({parted});
  EXPECT_EQ(model::CountGpus(*node.devices), 1);
  state_.UpsertOrderedNode(node, "fl-1");
  EXPECT_EQ(state_.devices().inventory().CountGpus("fl-1"), 1);
  EXPECT_EQ(Choice(Ask("two", 2), "fl-1"), ChoiceOutcome::kFound);
  EXPECT_EQ(Choice(Ask("three", 3), "fl-1"), ChoiceOutcome::kNone);
}

}  // namespace
}  // namespace fairlead::state
