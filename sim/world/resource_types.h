// The types of objects that the simulated API server has, one row each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::sim::world {

enum class ResourceType : uint8_t {
  kPods,
  kNodes,
  kNamespaces,
  kConfigMaps,
  kLeases,
  kEvents,
  kPriorityClasses,
  kPodDisruptionBudgets,
  kResourceClaims,
  kResourceSlices,
  kDeviceClasses,
  kPersistentVolumeClaims,
  kPersistentVolumes,
  kStorageClasses,
  kCsiNodes,
  kCsiDrivers,
  kCsiStorageCapacities,
  kVolumeAttachments,
  kServices,
  kReplicationControllers,
  kReplicaSets,
  kStatefulSets,
  kQueues,
  kPodGroups,
  kTopologies,
  kNodeRequests,
  kNodePools,
  kNativePodGroups,  // of scheduling.k8s.io
  kPodTemplates,
  kCapacityBuffers,
  kProvisioningRequests,
  kDeviceTaintRules,
  kJobs,
};
inline constexpr size_t kResourceTypes = 33;

struct ResourceRow {
  ResourceType type;
  absl::string_view group_version;  // "v1", "scheduling.run.ai/v2"
  absl::string_view kind;           // "Pod"
  absl::string_view plural;         // "pods"
  bool namespaced;
  bool has_status;  // its status is a sub-resource: ignored by writes of the object itself, and the
                    // only thing that /status changes
  bool protobuf;    // the server can answer in protobuf
};

const ResourceRow& RowOf(ResourceType type);
// "/api/v1" or "/apis/scheduling.run.ai/v2" of a path, then plural: null if there is no such type.
const ResourceRow* FindRow(absl::string_view group_version, absl::string_view plural);
// Of that group and version; empty: the server does not serve it.
std::vector<const ResourceRow*> RowsOf(absl::string_view group_version);
// "batch/v1" of "batch"; empty: the server does not serve the group.
absl::string_view VersionOf(absl::string_view group);

}  // namespace fairlead::sim::world
