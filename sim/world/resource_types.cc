#include "sim/world/resource_types.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/check.h"

namespace fairlead::sim::world {
namespace {

constexpr ResourceRow kRows[kResourceTypes] = {
    {ResourceType::kPods, "v1", "Pod", "pods", true, true, true},
    {ResourceType::kNodes, "v1", "Node", "nodes", false, true, true},
    {ResourceType::kNamespaces, "v1", "Namespace", "namespaces", false, true, false},
    {ResourceType::kConfigMaps, "v1", "ConfigMap", "configmaps", true, false, false},
    {ResourceType::kLeases, "coordination.k8s.io/v1", "Lease", "leases", true, false, false},
    {ResourceType::kEvents, "events.k8s.io/v1", "Event", "events", true, false, false},
    {ResourceType::kPriorityClasses, "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses",
     false, false, true},
    {ResourceType::kPodDisruptionBudgets, "policy/v1", "PodDisruptionBudget",
     "poddisruptionbudgets", true, true, true},
    {ResourceType::kResourceClaims, "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true,
     true, false},
    {ResourceType::kResourceSlices, "resource.k8s.io/v1", "ResourceSlice", "resourceslices", false,
     false, false},
    {ResourceType::kDeviceClasses, "resource.k8s.io/v1", "DeviceClass", "deviceclasses", false,
     false, false},
    {ResourceType::kPersistentVolumeClaims, "v1", "PersistentVolumeClaim", "persistentvolumeclaims",
     true, true, false},
    {ResourceType::kPersistentVolumes, "v1", "PersistentVolume", "persistentvolumes", false, true,
     false},
    {ResourceType::kStorageClasses, "storage.k8s.io/v1", "StorageClass", "storageclasses", false,
     false, false},
    {ResourceType::kCsiNodes, "storage.k8s.io/v1", "CSINode", "csinodes", false, false, false},
    {ResourceType::kCsiDrivers, "storage.k8s.io/v1", "CSIDriver", "csidrivers", false, false,
     false},
    {ResourceType::kCsiStorageCapacities, "storage.k8s.io/v1", "CSIStorageCapacity",
     "csistoragecapacities", true, false, false},
    {ResourceType::kVolumeAttachments, "storage.k8s.io/v1", "VolumeAttachment", "volumeattachments",
     false, true, false},
    {ResourceType::kServices, "v1", "Service", "services", true, true, false},
    {ResourceType::kReplicationControllers, "v1", "ReplicationController", "replicationcontrollers",
     true, true, false},
    {ResourceType::kReplicaSets, "apps/v1", "ReplicaSet", "replicasets", true, true, false},
    {ResourceType::kStatefulSets, "apps/v1", "StatefulSet", "statefulsets", true, true, false},
    {ResourceType::kQueues, "scheduling.run.ai/v2", "Queue", "queues", false, true, false},
    {ResourceType::kPodGroups, "scheduling.run.ai/v2alpha2", "PodGroup", "podgroups", true, true,
     false},
    {ResourceType::kTopologies, "kai.scheduler/v1alpha1", "Topology", "topologies", false, false,
     false},
    {ResourceType::kNodeRequests, "fairlead.dev/v1alpha1", "NodeRequest", "noderequests", false,
     true, false},
    {ResourceType::kNodePools, "fairlead.dev/v1alpha1", "NodePool", "nodepools", false, true,
     false},
    {ResourceType::kNativePodGroups, "scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", true,
     true, false},
    {ResourceType::kPodTemplates, "v1", "PodTemplate", "podtemplates", true, false, false},
    {ResourceType::kCapacityBuffers, "autoscaling.x-k8s.io/v1beta1", "CapacityBuffer",
     "capacitybuffers", true, true, false},
    {ResourceType::kProvisioningRequests, "autoscaling.x-k8s.io/v1", "ProvisioningRequest",
     "provisioningrequests", true, true, false},
    {ResourceType::kDeviceTaintRules, "resource.k8s.io/v1beta2", "DeviceTaintRule",
     "devicetaintrules", false, true, false},
    {ResourceType::kJobs, "batch/v1", "Job", "jobs", true, true, false},
};

}  // namespace

const ResourceRow& RowOf(ResourceType type) {
  const ResourceRow& row = kRows[static_cast<size_t>(type)];
  FAIRLEAD_CHECK(row.type == type, "the rows stand in the order of their types");
  return row;
}

const ResourceRow* FindRow(absl::string_view group_version, absl::string_view plural) {
  for (const ResourceRow& row : kRows) {
    if (row.plural == plural && row.group_version == group_version) return &row;
  }
  return nullptr;
}

std::vector<const ResourceRow*> RowsOf(absl::string_view group_version) {
  std::vector<const ResourceRow*> found;
  for (const ResourceRow& row : kRows) {
    if (row.group_version == group_version) found.push_back(&row);
  }
  return found;
}

absl::string_view VersionOf(absl::string_view group) {
  for (const ResourceRow& row : kRows) {
    absl::string_view version = row.group_version;
    if (absl::ConsumePrefix(&version, group) && absl::StartsWith(version, "/")) {
      return row.group_version;
    }
  }
  return "";
}

}  // namespace fairlead::sim::world
