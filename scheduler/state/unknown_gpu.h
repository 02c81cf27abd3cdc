// The shared GPU of a pod that is on a node and does not say which one it has: its label is
// missing, or its owner has annotated a share after the pod was bound, and no GPU was ever reserved
// for it.
//
// The pod is charged for a GPU of its own, and the group is closed: no pod may join it, because
// nothing says that the GPU exists, let alone is free.
//
// The ids follow from the pod and its node. No label is ever written with one. Thread-safety: pure
// functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::state {

inline constexpr char kUnknownGpu[] = "unknown-";

// `number`: of the GPUs that the pod does not name.
inline std::string UnknownGpuId(absl::string_view pod_uid, absl::string_view node, int64_t number) {
  return absl::StrCat(kUnknownGpu, GpuGroupId(pod_uid, node, number));
}

inline bool IsUnknownGpu(absl::string_view group) { return absl::StartsWith(group, kUnknownGpu); }

}  // namespace fairlead::state
