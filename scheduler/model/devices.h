// What dynamic resource allocation (resource.k8s.io/v1) says about devices: which there are, of
// which classes, and who asks for or has them.
//
// Kept are the fields that decisions read. What a claim asks for that we do not understand
// (firstAvailable, adminAccess, constraints between devices) is in its `invalid`: a pod with such a
// claim is refused with that text.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/model/object_meta.h"

namespace fairlead::model {

// No claim may be reserved for more pods (upstream's ResourceClaimReservedForMaxSize).
inline constexpr int64_t kMaxClaimConsumers = 256;
// A claim has at most so many devices (upstream's AllocationResultsMaxSize).
inline constexpr int64_t kMaxClaimDevices = 32;

struct DeviceClass {
  ObjectMeta meta;
  std::vector<std::string> selectors;  // CEL; a device has to satisfy all of them
  std::string invalid;
};

struct DeviceAttribute {
  std::variant<int64_t, bool, std::string> value;  // versions are kept as text
  friend bool operator==(const DeviceAttribute&, const DeviceAttribute&) = default;
};

struct Device {
  std::string name;
  // By qualified name, "domain/name"; without a domain it is the driver's own.
  std::map<std::string, DeviceAttribute> attributes;
  std::map<std::string, int64_t> capacity;  // base units of a Quantity, rounded up to whole ones
  friend bool operator==(const Device&, const Device&) = default;
};

struct ResourceSlice {
  ObjectMeta meta;
  std::string driver, pool;
  int64_t generation = 0;  // of the pool: only slices of the newest count
  std::string node_name;   // empty: devices of no single node, which are not placed yet
  std::vector<Device> devices;
  std::string invalid;
};

struct DeviceRequest {
  std::string name, device_class;
  bool all = false;   // allocationMode All: every device of a node that matches
  int64_t count = 1;  // allocationMode ExactCount
  std::vector<std::string> selectors;
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

struct AllocatedDevice {
  std::string request, driver, pool, device;
  friend bool operator==(const AllocatedDevice&, const AllocatedDevice&) = default;
};

struct ResourceClaim {
  ObjectMeta meta;
  std::vector<DeviceRequest> requests;
  bool allocated = false;  // status.allocation is there
  std::vector<AllocatedDevice> devices;
  std::vector<std::string> reserved_for;  // uids, in the order of the object
  std::string invalid;
};

using DeviceObject = std::variant<DeviceClass, ResourceSlice, ResourceClaim>;

}  // namespace fairlead::model
