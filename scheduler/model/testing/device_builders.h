// Short ways to write device objects in tests. Header only; never part of the product.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/devices.h"

namespace fairlead::model::testing {

inline DeviceClass MakeDeviceClass(absl::string_view name,
                                   std::vector<std::string> selectors = {}) {
  DeviceClass out;
  out.meta.name = std::string(name);
  out.selectors = std::move(selectors);
  return out;
}

// One slice with all devices of a node, named "0", "1", ...; the pool has the node's name.
inline ResourceSlice MakeSlice(absl::string_view node, int64_t devices,
                               absl::string_view driver = "gpu.nvidia.com") {
  ResourceSlice out;
  out.meta.name = absl::StrCat(node, "-", driver);
  out.driver = std::string(driver);
  out.pool = out.nodes.name = std::string(node);
  for (int64_t i = 0; i < devices; ++i) out.devices.push_back({absl::StrCat(i), {}, {}});
  return out;
}

// In namespace "ns".
inline ResourceClaim MakeClaim(absl::string_view name, int64_t count,
                               absl::string_view device_class = "gpu.nvidia.com",
                               absl::string_view queue = "") {
  ResourceClaim out;
  out.meta.ns = "ns";
  out.meta.name = std::string(name);
  if (!queue.empty()) out.meta.labels.Set(kQueueLabel, queue);
  DeviceRequest request;
  request.name = "r";
  request.device_class = std::string(device_class);
  request.count = count;
  out.requests.push_back(request);
  return out;
}

// Its request is for all devices of a node that match.
inline ResourceClaim AllOf(ResourceClaim claim) {
  claim.requests[0].all = true;
  return claim;
}

inline ResourceClaim Allocated(ResourceClaim claim, absl::string_view node,
                               const std::vector<std::string>& devices,
                               absl::string_view driver = "gpu.nvidia.com") {
  claim.allocated = true;
  for (const std::string& device : devices) {
    claim.devices.push_back({"r", std::string(driver), std::string(node), device});
  }
  return claim;
}

}  // namespace fairlead::model::testing
