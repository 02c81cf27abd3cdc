// Parts of a node that a pod takes besides amounts, and that are chosen when it is placed. Today
// these are GPUs that several pods share (gpu_devices.h). What places pods (the engine) asks here,
// and knows no kind of device.
//
// Thread-safety: pure functions. Complexity: as gpu_devices.h, where a class takes parts; O(1)
// where it takes none.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "scheduler/state/cluster_state.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::state {

using Parts = GpuPick;
using PartsOrder = GpuOrder;

// Pods of the class take parts, or hold them for others.
[[nodiscard]] inline bool TakesParts(const PodClass& pod_class) { return pod_class.SharesGpu(); }
// Some pods take parts of the resource's devices: what is free of it is no sum of whole ones.
[[nodiscard]] inline bool HasParts(model::ResourceIndex resource) {
  return resource == model::kGpu;
}
// What one whole device of such a resource counts.
inline constexpr int64_t kWholeDevice = 1000;

// Those that the pod has where it is.
[[nodiscard]] inline const Parts& PartsOf(const PodRecord& pod) { return pod.gpu_groups; }
// Those that it gets on the node: of what is free when promises are kept, even if that means
// waiting (MustWaitFor). Nothing in them for a class that takes none; none if they do not fit.
std::optional<Parts> PickParts(const ClusterState& state, PodId pod, NodeId node, PartsOrder order);
// Some of them have to be released first: the pod can only be promised them.
bool MustWaitFor(const ClusterState& state, PodId pod, NodeId node, const Parts& parts);
// No more pods of the class than this find parts on the node when promises are kept.
int64_t PlacesByParts(const NodeInfo& node, const PodClass& pod_class);

// What the node can be given to queues: also what is not allocatable under a resource's own name.
model::Resources CapacityForQueues(const NodeInfo& node);

// What is idle or being released, in sum.
struct FreeInSum {
  // Of a resource with HasParts(): what can be charged on nodes that pods may go to, parts
  // included. Of the others: what can be requested, also on nodes on order. By ResourceIndex.
  std::vector<int64_t> amounts;
  [[nodiscard]] int64_t operator[](model::ResourceIndex resource) const {
    return resource < amounts.size() ? amounts[resource] : 0;
  }
};
// O(nodes * resources + groups).
FreeInSum FreeInSumOf(const ClusterState& state);

}  // namespace fairlead::state
