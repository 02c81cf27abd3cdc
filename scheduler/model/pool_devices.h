// Devices that DRA drivers publish for each node of a NodePool (an entry of spec.devices), beside
// what the catalogue says of the node's type; of a driver that both name, the NodePool's count.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "scheduler/model/devices.h"

namespace fairlead::model {

// A node has no more of them.
inline constexpr int64_t kMostDeclaredDevices = 1024;

struct PoolDevices {
  std::string driver;
  std::optional<int64_t> count;  // absent, of GPU drivers alone: the GPUs of the type
  std::map<std::string, DeviceAttribute> attributes;
  std::map<std::string, int64_t> capacity;
  friend bool operator==(const PoolDevices&, const PoolDevices&) = default;
};

}  // namespace fairlead::model
