// The kinds of API objects that decisions read. Thread-safety: plain values.
#pragma once

#include <cstdint>

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
// In the order in which they are asked for.
inline constexpr Kind kAllKinds[] = {
    Kind::kNode,        Kind::kQueue,         Kind::kPodGroup,      Kind::kPriorityClass,
    Kind::kTopology,    Kind::kNodeRequest,   Kind::kNodePool,      Kind::kPodDisruptionBudget,
    Kind::kDeviceClass, Kind::kResourceSlice, Kind::kResourceClaim, Kind::kPod};
const char* KindName(Kind kind);

// Of dynamic resource allocation (resource.k8s.io).
constexpr bool IsDeviceKind(Kind kind) {
  return kind == Kind::kDeviceClass || kind == Kind::kResourceSlice || kind == Kind::kResourceClaim;
}
// What can be done without where the server does not have it or does not let us read it.
constexpr bool IsOptional(Kind kind) {
  return kind == Kind::kPodDisruptionBudget || IsDeviceKind(kind);
}

}  // namespace fairlead::model
