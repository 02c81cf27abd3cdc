#include "scheduler/model/node_devices.h"

#include <gtest/gtest.h>

#include "scheduler/model/testing/device_builders.h"

namespace fairlead::model {
namespace {

using testing::MakeSlice;

NodeDevices Of(const std::vector<ResourceSlice>& slices) {
  NodeDevices devices;
  for (const ResourceSlice& slice : slices) AddPool({&slice}, devices);
  return devices;
}

TEST(NodeDevices, NodesOfOneKindSayTheSame) {
  ResourceSlice one = MakeSlice("n1", 2), other = MakeSlice("n2", 2);
  other.generation = 7;
  one.devices[0].attributes["uuid"].value = std::string("GPU-1");
  other.devices[0].attributes["uuid"].value = std::string("GPU-2");
  one.devices[0].attributes["gpu.nvidia.com/uuid"].value = std::string("GPU-1");
  one.devices[0].attributes["model"].value = std::string("H100");
  other.devices[0].attributes["model"].value = std::string("H100");
  EXPECT_EQ(Of({one}), Of({other}));
  EXPECT_EQ(Of({one}).slices[0].devices[0].attributes.size(), 1u);
  other.devices[0].attributes["model"].value = std::string("A100");
  EXPECT_FALSE(Of({one}) == Of({other}));
  EXPECT_FALSE(Of({one}) == Of({MakeSlice("n1", 3)}));
}

TEST(NodeDevices, PoolsOfADriverStayApart) {
  const NodeDevices devices = Of({MakeSlice("n1", 2), MakeSlice("n1", 3), MakeSlice("n1", 1, "x")});
  ASSERT_EQ(devices.slices.size(), 3u);
  EXPECT_EQ(devices.slices[0].pool, "0");
  EXPECT_EQ(devices.slices[1].pool, "1");
  EXPECT_EQ(devices.slices[2].pool, "0");
  EXPECT_EQ(DescribeDevices(devices), "5 x gpu.nvidia.com, 1 x x");
  EXPECT_EQ(DescribeDevices({}), "none");
}

TEST(NodeDevices, GpusAreCountedAsQueuesCountThem) {
  ResourceSlice parted = MakeSlice("n1", 4);
  for (size_t i = 0; i < 3; ++i) parted.devices[i].uses = {{i < 2 ? "a" : "b", "memory", 1}};
  EXPECT_EQ(CountGpus(Of({parted})), 3);  // a, b and the whole one
  parted.devices[3].for_several = true;
  EXPECT_EQ(CountGpus(Of({parted})), 2);
  EXPECT_EQ(CountGpus(Of({MakeSlice("n1", 4, "nic.io")})), 0);
}

TEST(NodeDevices, NothingIsNotTheSameAsNone) {
  const auto some = std::make_shared<const NodeDevices>(Of({MakeSlice("n1", 1)}));
  const auto equal = std::make_shared<const NodeDevices>(Of({MakeSlice("n2", 1)}));
  EXPECT_TRUE(SameDevices(some, equal));
  EXPECT_TRUE(SameDevices(nullptr, nullptr));
  EXPECT_FALSE(SameDevices(some, nullptr));
  EXPECT_FALSE(SameDevices(nullptr, std::make_shared<const NodeDevices>()));
}

}  // namespace
}  // namespace fairlead::model
