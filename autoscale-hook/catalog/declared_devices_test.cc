#include "autoscale-hook/catalog/declared_devices.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/catalog.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

absl::StatusOr<Catalog> TypeWith(const std::string& devices, const std::string& more = "") {
  return Catalog::Parse(absl::StrCat("types:\n- {name: a, cpu: 8, memory: 8Gi, zones: [z], ", more,
                                     "devices: ", devices, "}"),
                        "c.yaml");
}

model::Node NodeOf(const InstanceType& type, const model::NodePool* pool = nullptr) {
  Offer offer;
  offer.type = &type;
  offer.pool = pool;
  return UsableNode(offer, "");
}

TEST(DeclaredDevicesTest, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"7", "c.yaml:2:55: types[0].devices: must be a list"},
      {"[]", "types[0].devices: must not be empty"},
      {"[{count: 1}]", "types[0].devices[0].driver: is missing"},
      {"[{driver: nic.io}]", "types[0].devices[0].count: is missing"},
      {"[{driver: nic.io, count: 0}]", "count: must be a whole number of at least 1"},
      {"[{driver: nic.io, count: 1025}]", "count: a type has 1024 devices at most"},
      {"[{driver: a.io, count: 1000}, {driver: b.io, count: 25}]", "devices[1].count: a type has"},
      {"[{driver: Nic, count: 1}]", "driver: must be the name of a DRA driver"},
      {"[{driver: nic.io, count: 1, model: x}]", "devices[0].model: unknown field"},
      {"[{driver: nic.io, count: 1, attributes: {a-b: x}}]", "a-b: is no name of an attribute"},
      {"[{driver: nic.io, count: 1, attributes: {/a: x}}]", "is no name of an attribute"},
      {"[{driver: nic.io, count: 1, attributes: {a: {int: x}}}]", "attributes.a: must be {string"},
      {"[{driver: nic.io, count: 1, attributes: {a: {bool: 1}}}]", "attributes.a: must be {string"},
      {"[{driver: nic.io, count: 1, attributes: {a: {version: 1.2}}}]", "attributes.a: must be"},
      {"[{driver: nic.io, count: 1, attributes: {a: {float: 1.2}}}]", "attributes.a: must be"},
      {"[{driver: nic.io, count: 1, attributes: {a: {}}}]", "must have one of string, int"},
      {"[{driver: nic.io, count: 1, attributes: {a: [x]}}]", "attributes.a: must be a plain value"},
      {"[{driver: nic.io, count: 1, capacity: {m: lots}}]", "capacity.m: "},
      {"[{driver: nic.io, count: 1, capacity: {m: -1}}]", "capacity.m: must not be negative"},
      {"[{driver: nic.io, count: 1, capacity: {7m: 1}}]", "7m: is no name of a capacity"},
      // What caps count is what the type says of its GPUs.
      {"[{driver: gpu.nvidia.com, count: 1}]", "types[0].devices: GPUs: 1, but gpu.count is 0"},
  };
  for (const auto& [yaml, want] : cases) {
    const absl::Status status = TypeWith(yaml).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << yaml;
    EXPECT_NE(status.message().find(want), std::string::npos) << yaml << "\n" << status;
  }
  EXPECT_FALSE(
      TypeWith("[{driver: gpu.nvidia.com, count: 2}]", "gpu: {model: m, count: 4}, ").ok());
  std::string many = "[{driver: nic.io, count: 1, attributes: {";
  for (int i = 0; i < 33; ++i) absl::StrAppend(&many, i == 0 ? "" : ", ", "a", i, ": x");
  EXPECT_FALSE(TypeWith(absl::StrCat(many, "}}]")).ok());
}

TEST(DeclaredDevicesTest, EachDeviceHasWhatItsEntrySays) {
  const auto catalog = TypeWith(
      "[{driver: nic.io, count: 1, attributes: {x.io/speed: {int: 400}, up: {bool: true}}}, "
      "{driver: gpu.nvidia.com, count: 2, attributes: {productName: H100, cuda: {version: 9.0.0}}, "
      "capacity: {memory: 80Gi}}, {driver: nic.io, count: 1}]",
      "gpu: {model: m, count: 2}, ");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const model::NodeDevices& devices = *catalog->Find("a")->devices;
  EXPECT_EQ(model::DescribeDevices(devices), "2 x gpu.nvidia.com, 2 x nic.io");
  ASSERT_EQ(devices.slices.size(), 2u);
  const model::Device& gpu = devices.slices[0].devices[1];
  EXPECT_EQ(gpu.attributes.at("productName").value,
            decltype(model::DeviceAttribute::value)(std::string("H100")));
  EXPECT_EQ(gpu.attributes.at("cuda").value,
            decltype(model::DeviceAttribute::value)(model::DeviceVersion{"9.0.0"}));
  EXPECT_EQ(gpu.capacity.at("memory"), int64_t{80} << 30);
  const std::vector<model::Device>& nics = devices.slices[1].devices;
  EXPECT_EQ(nics[0].attributes.size(), 2u);
  EXPECT_TRUE(nics[1].attributes.empty());
  EXPECT_NE(nics[0].name, nics[1].name);
}

// A device plugin and a DRA driver do not give the same GPUs.
TEST(DeclaredDevicesTest, GpusThatAreDevicesAreNoResourceOfTheNode) {
  const auto by_claim =
      TypeWith("[{driver: gpu.nvidia.com, count: 2}]", "gpu: {model: m, count: 2}, ");
  ASSERT_TRUE(by_claim.ok()) << by_claim.status();
  const model::Node node = NodeOf(*by_claim->Find("a"));
  EXPECT_EQ(model::Get(node.allocatable, model::kGpuName), 0);
  EXPECT_EQ(node.meta.labels.Get(model::kGpuCountLabel), "2");
  ASSERT_NE(node.devices, nullptr);
  const auto beside = TypeWith("[{driver: nic.io, count: 2}]", "gpu: {model: m, count: 2}, ");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(model::Get(NodeOf(*beside->Find("a")).allocatable, model::kGpuName), 2000);
}

// What a NodePool says of a driver counts instead of what the catalogue says.
TEST(DeclaredDevicesTest, ANodePoolAddsToAType) {
  const auto catalog = TypeWith("[{driver: nic.io, count: 2}, {driver: fpga.io, count: 1}]",
                                "gpu: {model: m, count: 4}, ");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  model::NodePool pool;
  pool.devices.resize(3);
  pool.devices[0].driver = "gpu.nvidia.com";
  pool.devices[1].driver = pool.devices[2].driver = "nic.io";
  pool.devices[1].count = pool.devices[2].count = 3;
  const InstanceType& type = *catalog->Find("a");
  const model::Node node = NodeOf(type, &pool);
  ASSERT_NE(node.devices, nullptr);
  EXPECT_EQ(model::DescribeDevices(*node.devices), "1 x fpga.io, 4 x gpu.nvidia.com, 6 x nic.io");
  EXPECT_EQ(model::Get(node.allocatable, model::kGpuName), 0) << "its GPUs come by claim";
  // A type without GPUs has none of them.
  const auto plain = Catalog::Parse("types: [{name: a, cpu: 8, memory: 8Gi, zones: [z]}]", "c");
  pool.devices.resize(1);
  EXPECT_EQ(DeclaredDevices(*plain->Find("a"), &pool), nullptr);
  EXPECT_EQ(DeclaredDevices(*plain->Find("a"), nullptr), nullptr);
}

}  // namespace
}  // namespace fairlead::hook
