// Whether the devices of an allocated claim are ready for its pods: conditions that a driver
// reports after the allocation, when it has attached the device to the node, say (KEP-5007,
// DRADeviceBindingConditions).
//
// Source: isClaimReadyForBinding in k8s.io/kubernetes
// pkg/scheduler/framework/plugins/dynamicresources. What differs: a failure is told although a
// device before it is still awaited.
//
// Thread-safety: pure functions. Complexity: O(devices x reports).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"

namespace fairlead::model {

// Some of the devices have conditions to wait for.
bool HasBindingConditions(const std::vector<AllocatedDevice>& devices);

struct DeviceReadiness {
  // A device that will not do, which condition says so, and what its driver says; or empty.
  std::string failure;
  // What is waited for: a device and its conditions that are not True; or empty.
  std::string awaited;
  [[nodiscard]] bool IsReady() const { return failure.empty() && awaited.empty(); }
};
// Of a claim that is allocated.
DeviceReadiness ReadinessOf(const ResourceClaim& claim);

// Forgets what is reported of other devices than those that have binding conditions, and other
// conditions than theirs.
void KeepBindingConditions(ResourceClaim& claim);

}  // namespace fairlead::model
