// PodDisruptionBudget (policy/v1): how many of the pods that it selects may be evicted now.
//
// Fairlead takes the numbers of its status unchanged. The disruption controller computes them, and
// the eviction API decrements them in the write that lets an eviction through (k8s.io/kubernetes
// pkg/registry/core/pod/storage/eviction.go).
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/selector.h"

namespace fairlead::model {

struct PodDisruptionBudget {
  ObjectMeta meta;
  // Pods of its namespace. Absent: none; empty: all.
  LabelSelector selector;
  int64_t observed_generation = 0;  // of the spec that the status was computed from
  int64_t disruptions_allowed = 0;
  int64_t current_healthy = 0;
  int64_t desired_healthy = 0;
  bool always_allow = false;  // spec.unhealthyPodEvictionPolicy is AlwaysAllow
  // Sorted names of pods whose eviction was let through and counted, and whose end the controller
  // has not seen.
  std::vector<std::string> disrupted_pods;
  // What is wrong with it, e.g. an unknown operator. Such a budget selects every pod of its
  // namespace: it protects too many pods rather than too few.
  std::string invalid;

  // The number of evictions that the API permits: 0 while the status is older than the spec.
  [[nodiscard]] int64_t Allowed() const {
    if (observed_generation < meta.generation || disruptions_allowed < 0) return 0;
    return disruptions_allowed;
  }
  // A pod that runs and is not ready is evicted without the budget's leave, and without being
  // counted. (Without a policy, IfHealthyBudget.)
  [[nodiscard]] bool LetsUnhealthyGo() const {
    if (!invalid.empty()) return false;
    return always_allow || (desired_healthy > 0 && current_healthy >= desired_healthy);
  }
};

}  // namespace fairlead::model
