// What a catalogue says of the devices that DRA drivers publish for a node of a type:
//
//   devices:
//   - driver: gpu.nvidia.com
//     count: 8
//     attributes:                        # of each of these devices, as in a ResourceSlice
//       productName: {string: NVIDIA H100 80GB HBM3}
//       cudaComputeCapability: {version: 9.0.0}
//     capacity: {memory: 80Gi}
//
// A plain value is a string. All devices of a driver are in one pool. A type has
// model::kMostDeclaredDevices at most.
//
// Errors: InvalidArgument with file, place and field. Thread-safety: pure functions.
#pragma once

#include <memory>

#include "document/fields.h"
#include "scheduler/model/node_devices.h"

namespace fairlead::hook {

// `reader` outlives the handler.
FieldReader::Handler ReadDeclaredDevices(const FieldReader& reader,
                                         std::shared_ptr<const model::NodeDevices>* out);

}  // namespace fairlead::hook
