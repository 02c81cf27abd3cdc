#include "scheduler/state/parts.h"

#include <algorithm>

namespace fairlead::state {
namespace {

// In thousandths of a GPU.
int64_t FreeWithParts(const NodeInfo& node) {
  int64_t free_milli = std::max<int64_t>(0, node.Future()[model::kGpu]) + node.other_gpus_milli;
  const int64_t memory = MemoryOrNominal(node.gpu_memory_mib);
  for (const GpuGroup& group : node.gpu_groups) {
    if (group.closed || group.active == 0) continue;  // counted as a whole GPU above
    const int64_t used = group.used_mib - group.releasing_mib + group.pipelined_mib;
    free_milli += std::max<int64_t>(0, memory - used) * kWholeDevice / memory;
  }
  return free_milli;
}

}  // namespace

std::optional<Parts> PickParts(const ClusterState& state, PodId pod, NodeId node,
                               PartsOrder order) {
  const PodClass& pod_class = state.class_of(pod);
  if (!pod_class.spec->gpu_share.IsSet()) return Parts();
  return PickGpus(state.node(node), pod_class, state.pod(pod).uid, GpuCapacity::kFuture, order);
}

bool MustWaitFor(const ClusterState& state, PodId pod, NodeId node, const Parts& parts) {
  return !parts.empty() && MustWait(state.node(node), state.class_of(pod), parts);
}

int64_t PlacesByParts(const NodeInfo& node, const PodClass& pod_class) {
  if (!pod_class.spec->gpu_share.IsSet()) return std::numeric_limits<int64_t>::max();
  return SharePlaces(node, pod_class, GpuCapacity::kFuture);
}

model::Resources CapacityForQueues(const NodeInfo& node) {
  model::Resources capacity = node.allocatable;
  capacity.Set(model::kGpu, model::SaturatingAdd(capacity[model::kGpu], node.other_gpus_milli));
  return capacity;
}

FreeInSum FreeInSumOf(const ClusterState& state) {
  FreeInSum free;
  free.amounts.assign(state.resource_names().size(), 0);
  for (const auto& [name, id] : state.nodes_by_name()) {
    const NodeInfo& node = state.node(id);
    if (!node.exists) continue;
    for (size_t r = 0; r < node.allocatable.size() && r < free.amounts.size(); ++r) {
      const auto resource = static_cast<model::ResourceIndex>(r);
      if (HasParts(resource)) continue;
      free.amounts[r] =
          model::SaturatingAdd(free.amounts[r], std::max<int64_t>(0, node.Future(resource)));
    }
    if (node.TakesBindings()) free.amounts[model::kGpu] += FreeWithParts(node);
  }
  return free;
}

}  // namespace fairlead::state
