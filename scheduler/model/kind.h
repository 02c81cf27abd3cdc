// The kinds of API objects that decisions read. Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace fairlead::model {

enum class Kind : uint8_t {
  kPod,
  kNode,
  kQueue,
  kPodGroup,
  kPriorityClass,
  kTopology,
  kNodeRequest,
  kNodePool,
  kPodDisruptionBudget,
  kDeviceClass,
  kResourceSlice,
  kResourceClaim,
  kNodeResourceTopology,
  kNamespace,
  kPersistentVolumeClaim,
  kPersistentVolume,
  kStorageClass,
  kCsiNode,
  kCsiDriver,
  kCsiStorageCapacity,
  kVolumeAttachment,
  kService,
  kReplicationController,
  kReplicaSet,
  kStatefulSet,
  kNativePodGroup,
  kPodTemplate,
  kCapacityBuffer,
  kProvisioningRequest,
  kDeviceTaintRule,
};
// In the order in which they are listed.
inline constexpr Kind kAllKinds[] = {Kind::kNode,
                                     Kind::kQueue,
                                     Kind::kPodGroup,
                                     Kind::kNativePodGroup,
                                     Kind::kPriorityClass,
                                     Kind::kTopology,
                                     Kind::kNodeRequest,
                                     Kind::kNodePool,
                                     Kind::kPodTemplate,
                                     Kind::kCapacityBuffer,
                                     Kind::kProvisioningRequest,
                                     Kind::kPodDisruptionBudget,
                                     Kind::kDeviceClass,
                                     Kind::kDeviceTaintRule,
                                     Kind::kResourceSlice,
                                     Kind::kResourceClaim,
                                     Kind::kNodeResourceTopology,
                                     Kind::kNamespace,
                                     Kind::kStorageClass,
                                     Kind::kCsiDriver,
                                     Kind::kCsiNode,
                                     Kind::kCsiStorageCapacity,
                                     Kind::kPersistentVolume,
                                     Kind::kPersistentVolumeClaim,
                                     Kind::kVolumeAttachment,
                                     Kind::kService,
                                     Kind::kReplicationController,
                                     Kind::kReplicaSet,
                                     Kind::kStatefulSet,
                                     Kind::kPod};

// Whether a server has a kind.
enum class Presence : uint8_t {
  kBuiltIn,    // every server has it and lets us read it
  kInstalled,  // a CustomResourceDefinition that must be installed
  kOptional,   // not needed: the server may lack it, or deny access to it
};

// All that is data about a kind. How its objects are decoded is in kube/codec, and what they mean
// is in core; both are chosen by type, so a kind without them does not compile. A new kind needs a
// row here, a type in `Object` (cluster_event.h) at the same position, a decoder, and the handlers
// of its events.
struct KindTraits {
  Kind kind;
  const char* name;
  const char* api_version;
  const char* resource;  // the plural in paths
  bool is_namespaced = false;
  bool has_protobuf = false;  // the server offers protobuf for this kind
  Presence presence = Presence::kInstalled;
  bool is_device = false;         // without it, claims for devices (resource.k8s.io) cannot be read
  bool is_volume = false;         // of storage: an alternative of VolumeObject (volumes.h)
  bool is_spread_source = false;  // an alternative of SpreadSource (spread_sources.h)
  // What lists and watches ask for, in the syntax of field selectors. Empty: all objects.
  const char* field_selector = "";
  // Its producer says how much of its watch has been seen (Progress in cluster_event.h), because
  // another kind is compared with it: the pods that are on a node.
  bool tells_progress = false;
  // The `action` of events about such an object.
  const char* event_action = "Scheduling";
  // What people and metrics read, if another kind has the name. Empty: the name.
  const char* title = "";
};
// In the order of the enumeration.
inline constexpr KindTraits kKindTraits[] = {
    {.kind = Kind::kPod,
     .name = "Pod",
     .api_version = "v1",
     .resource = "pods",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kBuiltIn,
     .field_selector = "status.phase!=Failed",
     .tells_progress = true},
    {.kind = Kind::kNode,
     .name = "Node",
     .api_version = "v1",
     .resource = "nodes",
     .has_protobuf = true,
     .presence = Presence::kBuiltIn,
     .event_action = "Scaling"},
    {.kind = Kind::kQueue,
     .name = "Queue",
     .api_version = "scheduling.run.ai/v2",
     .resource = "queues"},
    {.kind = Kind::kPodGroup,
     .name = "PodGroup",
     .api_version = "scheduling.run.ai/v2alpha2",
     .resource = "podgroups",
     .is_namespaced = true},
    {.kind = Kind::kPriorityClass,
     .name = "PriorityClass",
     .api_version = "scheduling.k8s.io/v1",
     .resource = "priorityclasses",
     .has_protobuf = true,
     .presence = Presence::kBuiltIn},
    {.kind = Kind::kTopology,
     .name = "Topology",
     .api_version = "kai.scheduler/v1alpha1",
     .resource = "topologies"},
    {.kind = Kind::kNodeRequest,
     .name = "NodeRequest",
     .api_version = "fairlead.dev/v1alpha1",
     .resource = "noderequests",
     .event_action = "Scaling"},
    {.kind = Kind::kNodePool,
     .name = "NodePool",
     .api_version = "fairlead.dev/v1alpha1",
     .resource = "nodepools",
     .event_action = "Scaling"},
    {.kind = Kind::kPodDisruptionBudget,
     .name = "PodDisruptionBudget",
     .api_version = "policy/v1",
     .resource = "poddisruptionbudgets",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kOptional},
    {.kind = Kind::kDeviceClass,
     .name = "DeviceClass",
     .api_version = "resource.k8s.io/v1",
     .resource = "deviceclasses",
     .presence = Presence::kOptional,
     .is_device = true},
    {.kind = Kind::kResourceSlice,
     .name = "ResourceSlice",
     .api_version = "resource.k8s.io/v1",
     .resource = "resourceslices",
     .presence = Presence::kOptional,
     .is_device = true},
    {.kind = Kind::kResourceClaim,
     .name = "ResourceClaim",
     .api_version = "resource.k8s.io/v1",
     .resource = "resourceclaims",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .is_device = true},
    {.kind = Kind::kNodeResourceTopology,
     .name = "NodeResourceTopology",
     .api_version = "topology.node.k8s.io/v1alpha2",
     .resource = "noderesourcetopologies",
     .presence = Presence::kOptional},
    {.kind = Kind::kNamespace,
     .name = "Namespace",
     .api_version = "v1",
     .resource = "namespaces",
     .presence = Presence::kOptional},
    {.kind = Kind::kPersistentVolumeClaim,
     .name = "PersistentVolumeClaim",
     .api_version = "v1",
     .resource = "persistentvolumeclaims",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kPersistentVolume,
     .name = "PersistentVolume",
     .api_version = "v1",
     .resource = "persistentvolumes",
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kStorageClass,
     .name = "StorageClass",
     .api_version = "storage.k8s.io/v1",
     .resource = "storageclasses",
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kCsiNode,
     .name = "CSINode",
     .api_version = "storage.k8s.io/v1",
     .resource = "csinodes",
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kCsiDriver,
     .name = "CSIDriver",
     .api_version = "storage.k8s.io/v1",
     .resource = "csidrivers",
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kCsiStorageCapacity,
     .name = "CSIStorageCapacity",
     .api_version = "storage.k8s.io/v1",
     .resource = "csistoragecapacities",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kVolumeAttachment,
     .name = "VolumeAttachment",
     .api_version = "storage.k8s.io/v1",
     .resource = "volumeattachments",
     .presence = Presence::kOptional,
     .is_volume = true},
    {.kind = Kind::kService,
     .name = "Service",
     .api_version = "v1",
     .resource = "services",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kOptional,
     .is_spread_source = true},
    {.kind = Kind::kReplicationController,
     .name = "ReplicationController",
     .api_version = "v1",
     .resource = "replicationcontrollers",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kOptional,
     .is_spread_source = true},
    {.kind = Kind::kReplicaSet,
     .name = "ReplicaSet",
     .api_version = "apps/v1",
     .resource = "replicasets",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kOptional,
     .is_spread_source = true},
    {.kind = Kind::kStatefulSet,
     .name = "StatefulSet",
     .api_version = "apps/v1",
     .resource = "statefulsets",
     .is_namespaced = true,
     .has_protobuf = true,
     .presence = Presence::kOptional,
     .is_spread_source = true},
    {.kind = Kind::kNativePodGroup,
     .name = "PodGroup",
     .api_version = "scheduling.k8s.io/v1alpha2",
     .resource = "podgroups",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .title = "PodGroup.scheduling.k8s.io"},
    {.kind = Kind::kPodTemplate,
     .name = "PodTemplate",
     .api_version = "v1",
     .resource = "podtemplates",
     .is_namespaced = true,
     .presence = Presence::kOptional},
    {.kind = Kind::kCapacityBuffer,
     .name = "CapacityBuffer",
     .api_version = "autoscaling.x-k8s.io/v1beta1",
     .resource = "capacitybuffers",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .event_action = "Scaling"},
    {.kind = Kind::kProvisioningRequest,
     .name = "ProvisioningRequest",
     .api_version = "autoscaling.x-k8s.io/v1",
     .resource = "provisioningrequests",
     .is_namespaced = true,
     .presence = Presence::kOptional,
     .event_action = "Scaling"},
    {.kind = Kind::kDeviceTaintRule,
     .name = "DeviceTaintRule",
     .api_version = "resource.k8s.io/v1beta2",
     .resource = "devicetaintrules",
     .presence = Presence::kOptional},
};
constexpr const KindTraits& TraitsOf(Kind kind) { return kKindTraits[static_cast<size_t>(kind)]; }

// Every row is at the position of its kind, and every kind is listed once.
constexpr bool KindsAreComplete() {
  if (std::size(kKindTraits) != std::size(kAllKinds)) return false;
  for (size_t i = 0; i < std::size(kKindTraits); ++i) {
    if (static_cast<size_t>(kKindTraits[i].kind) != i) return false;
    size_t listed = 0;
    for (const Kind kind : kAllKinds) listed += kind == kKindTraits[i].kind ? 1 : 0;
    if (listed != 1) return false;
  }
  return true;
}
static_assert(KindsAreComplete());

constexpr const char* KindName(Kind kind) { return TraitsOf(kind).name; }
// Another for each kind.
constexpr const char* KindTitle(Kind kind) {
  const KindTraits& traits = TraitsOf(kind);
  return *traits.title == '\0' ? traits.name : traits.title;
}
constexpr bool IsDeviceKind(Kind kind) { return TraitsOf(kind).is_device; }
constexpr bool IsVolumeKind(Kind kind) { return TraitsOf(kind).is_volume; }
constexpr bool IsSpreadSource(Kind kind) { return TraitsOf(kind).is_spread_source; }
constexpr bool IsOptional(Kind kind) { return TraitsOf(kind).presence == Presence::kOptional; }

}  // namespace fairlead::model
