// Names of the resources that ResourceClaims make a pod request. A *demand* is a number of devices
// of a class. A *shape* is a claim that numbers do not describe (scheduler/state/ device_shape.h).
// No resource of a container can have such a name.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

inline constexpr absl::string_view kDemandPrefix = "deviceclass:";
inline constexpr absl::string_view kShapePrefix = "deviceclaim:";

// Marks the claim that gives a pod its extended resources.
inline constexpr char kExtendedClaimAnnotation[] = "resource.kubernetes.io/extended-resource-claim";

// GPUs as queues count them, by the name of the device class or the driver.
inline bool IsGpuDriver(absl::string_view name) {
  return name == "gpu.nvidia.com" || name == "nvidia.com/gpu" || name == "gpu.amd.com" ||
         name == "amd.com/gpu" || name == "gpu.intel.com";
}

// Devices of an amount of an extended resource as ResourceList has it (GPUs are in thousandths),
// and the other way round.
inline int64_t DevicesOfAmount(absl::string_view resource, int64_t amount) {
  return resource == kGpuName ? amount / 1000 : amount;
}
inline int64_t AmountOfDevices(absl::string_view resource, int64_t devices) {
  return resource == kGpuName ? 1000 * devices : devices;
}

}  // namespace fairlead::model
