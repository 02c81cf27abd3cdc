// Devices of a node that pods are promised in this cycle.
//
// A pod that waits for devices of terminating pods holds none of them yet (PodStatus::kPipelined).
// It needs some devices of the node to be left for it, not certain ones. So every other pod that is
// placed on the node gets devices beside which all that is promised there stays possible
// (PlaceDevices with PromisedBesides). Otherwise the pod that a controller makes in the place of
// an evicted one could take a device that suits the promised pod alone, and be evicted again.
//
// Thread-safety: the state's. Complexity: PromisesOn O(pods of the node + claims of promised pods);
// IsComing O(pods that name the claim).
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/resources.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

struct DevicePromises {
  model::ResourceList demands;    // what the promised pods ask for by claims that hold nothing
  std::vector<std::string> kept;  // claims that keep the devices they hold; sorted

  [[nodiscard]] bool Keeps(const DeviceAllocator& book, const NodeDevice& device) const;
};

// `joined`: claims that the pod in question joins (PodSpec::claims_to_join). They are kept, too.
DevicePromises PromisesOn(const ClusterState& state, const NodeInfo& node,
                          const std::vector<std::string>& joined);

// Is the device free, or will its claim be freed: because all pods that use the claim terminate, or
// are promised other places in this cycle, or are gone? A device that is not local to a node
// (device_inventory.h) is not waited for: it has to be free.
bool IsComing(const ClusterState& state, const NodeDevice& device);

}  // namespace fairlead::state
