// What DRA drivers publish for a node, without what is of this one node: what nodes of its kind
// bring. A catalogue declares it, and nodes teach it.
//
// Thread-safety: plain values, pure functions. Complexity: O(devices).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"

namespace fairlead::model {

struct NodeDevices {
  // By driver and pool. Without names, nodes and generations; the pools of a driver have the names
  // "0", "1", ... All slices of each pool are there.
  std::vector<ResourceSlice> slices;
  // "driver/pool": pools whose devices are not of one node alone. What another node would have of
  // such devices is not known.
  std::vector<std::string> shared_pools = {};

  [[nodiscard]] bool empty() const { return slices.empty() && shared_pools.empty(); }
  friend bool operator==(const NodeDevices& a, const NodeDevices& b);
};

// Adds a pool, all of whose slices these are. What tells one device from all others of the world
// is left out: attributes `uuid` of the driver, and resource.kubernetes.io/pciBusID.
void AddPool(const std::vector<const ResourceSlice*>& slices, NodeDevices& devices);

// Adds so many of the device, under other names, to the one pool of the driver.
void AddDevices(const std::string& driver, const Device& device, int64_t count,
                NodeDevices& devices);

// By driver.
std::map<std::string, int64_t> CountByDriver(const NodeDevices& devices);
// As queues count them: partitions that use one set of counters are one.
int64_t CountGpus(const NodeDevices& devices);
// "8 x gpu.nvidia.com, 2 x nic.example.com"; "none" if there are none.
std::string DescribeDevices(const NodeDevices& devices);

// Whether the two say the same, or are both null.
bool SameDevices(const std::shared_ptr<const NodeDevices>& a,
                 const std::shared_ptr<const NodeDevices>& b);

}  // namespace fairlead::model
