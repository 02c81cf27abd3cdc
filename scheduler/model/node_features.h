// Features of kubelets that some pods need and that nodes declare (status.declaredFeatures).
//
// Source: k8s.io/component-helpers/nodedeclaredfeatures, release 1.36: of its features those that
// are inferred for scheduling. Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace fairlead::model {

// A set: one bit each.
using NodeFeatures = uint8_t;

inline constexpr NodeFeatures kRestartAllContainersOnContainerExits = 1;
inline constexpr NodeFeatures kUserNamespacesHostNetworkSupport = 2;
inline constexpr NodeFeatures kAllNodeFeatures = 3;

// 0 for a name that no pod needs.
inline NodeFeatures NodeFeatureOf(absl::string_view name) {
  if (name == "RestartAllContainersOnContainerExits") return kRestartAllContainersOnContainerExits;
  if (name == "UserNamespacesHostNetworkSupport") return kUserNamespacesHostNetworkSupport;
  return 0;
}

}  // namespace fairlead::model
