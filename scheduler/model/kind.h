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
};
// In the order in which they are asked for.
inline constexpr Kind kAllKinds[] = {
    Kind::kNode,     Kind::kQueue,       Kind::kPodGroup, Kind::kPriorityClass,
    Kind::kTopology, Kind::kNodeRequest, Kind::kNodePool, Kind::kPodDisruptionBudget,
    Kind::kPod};
const char* KindName(Kind kind);

}  // namespace fairlead::model
