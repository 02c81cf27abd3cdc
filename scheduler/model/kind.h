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
};
// In the order in which they are listed.
inline constexpr Kind kAllKinds[] = {
    Kind::kNode,        Kind::kQueue,         Kind::kPodGroup,      Kind::kPriorityClass,
    Kind::kTopology,    Kind::kNodeRequest,   Kind::kNodePool,      Kind::kPodDisruptionBudget,
    Kind::kDeviceClass, Kind::kResourceSlice, Kind::kResourceClaim, Kind::kPod};

// Whether a server has a kind.
enum class Presence : uint8_t {
  kBuiltIn,    // every server has it and lets us read it
  kInstalled,  // a CustomResourceDefinition that must be installed
  kOptional,   // not needed: the server may lack it, or deny access to it
};

// The traits of a kind, except how its objects are decoded (kube/codec) and what they mean (core).
// A new kind needs a row here, a type in `Upsert::object` at the same position, a decoder, and the
// handlers of its events.
struct KindTraits {
  Kind kind;
  const char* name;
  const char* api_version;
  const char* resource;  // the plural in paths
  bool is_namespaced;
  bool has_protobuf;  // the server offers protobuf for this kind
  Presence presence;
  bool is_device;  // of dynamic resource allocation (resource.k8s.io)
};
// In the order of the enumeration.
inline constexpr KindTraits kKindTraits[] = {
    {Kind::kPod, "Pod", "v1", "pods", true, true, Presence::kBuiltIn, false},
    {Kind::kNode, "Node", "v1", "nodes", false, true, Presence::kBuiltIn, false},
    {Kind::kQueue, "Queue", "scheduling.run.ai/v2", "queues", false, false, Presence::kInstalled,
     false},
    {Kind::kPodGroup, "PodGroup", "scheduling.run.ai/v2alpha2", "podgroups", true, false,
     Presence::kInstalled, false},
    {Kind::kPriorityClass, "PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", false, true,
     Presence::kBuiltIn, false},
    {Kind::kTopology, "Topology", "kai.scheduler/v1alpha1", "topologies", false, false,
     Presence::kInstalled, false},
    {Kind::kNodeRequest, "NodeRequest", "fairlead.dev/v1alpha1", "noderequests", false, false,
     Presence::kInstalled, false},
    {Kind::kNodePool, "NodePool", "fairlead.dev/v1alpha1", "nodepools", false, false,
     Presence::kInstalled, false},
    {Kind::kPodDisruptionBudget, "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", true,
     true, Presence::kOptional, false},
    {Kind::kDeviceClass, "DeviceClass", "resource.k8s.io/v1", "deviceclasses", false, false,
     Presence::kOptional, true},
    {Kind::kResourceSlice, "ResourceSlice", "resource.k8s.io/v1", "resourceslices", false, false,
     Presence::kOptional, true},
    {Kind::kResourceClaim, "ResourceClaim", "resource.k8s.io/v1", "resourceclaims", true, false,
     Presence::kOptional, true},
};
constexpr const KindTraits& TraitsOf(Kind kind) { return kKindTraits[static_cast<size_t>(kind)]; }

constexpr bool KindTraitsAreInOrder() {
  for (size_t i = 0; i < std::size(kKindTraits); ++i) {
    if (static_cast<size_t>(kKindTraits[i].kind) != i) return false;
  }
  return std::size(kKindTraits) == std::size(kAllKinds);
}
static_assert(KindTraitsAreInOrder());

constexpr const char* KindName(Kind kind) { return TraitsOf(kind).name; }
constexpr bool IsDeviceKind(Kind kind) { return TraitsOf(kind).is_device; }
constexpr bool IsOptional(Kind kind) { return TraitsOf(kind).presence == Presence::kOptional; }

}  // namespace fairlead::model
