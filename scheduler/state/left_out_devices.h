// What verdicts say of devices that suit a claim and are given to none, because several claims at
// once may have parts of their capacity (model::Device::for_several, upstream's
// DRAConsumableCapacity).
//
// Thread-safety: the state's. Complexity: as said.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/device_allocator.h"

namespace fairlead::state {

// Of the devices that the node could use, by their drivers: "{devices of d.io are ..}". `resource`:
// a demand, a shape, or an extended resource that a device class gives; empty for any other, and if
// there is no such device. O(devices of the node).
std::string LeftOutOn(const DeviceAllocator& book, absl::string_view node,
                      absl::string_view resource);

// Why no node will ever have what claims made of these requests of a pod: all devices of the
// cluster that suit are left out. Empty: some are not, or none suits. O(requests) if that is known
// already (DeviceAllocator::LeftOut).
std::string LeftOutEverywhere(const DeviceAllocator& book, const model::ResourceList& requests);

}  // namespace fairlead::state
