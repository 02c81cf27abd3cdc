// Of which kind a pod group is, from what its spec or an action about it says (`native`).
// Thread-safety: a pure function.
#pragma once

#include "scheduler/model/kind.h"

namespace fairlead::model {

constexpr Kind PodGroupKind(bool native) {
  return native ? Kind::kNativePodGroup : Kind::kPodGroup;
}

}  // namespace fairlead::model
