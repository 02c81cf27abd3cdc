// PodDisruptionBudget (policy/v1): how many of the pods that it selects may be evicted now.
//
// Fairlead takes the numbers of its status as they stand: the disruption controller computes them,
// and the eviction API counts them down in the same write that lets an eviction through
// (k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go).
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
  // Names of pods whose eviction was let through and has been counted, until the controller has
  // seen them go; sorted.
  std::vector<std::string> disrupted_pods;
  // What is wrong with it, e.g. an operator that nobody knows. Such a budget is taken to select
  // every pod of its namespace: rather spare one too many.
  std::string invalid;

  // What the eviction API lets through: nothing while the status is older than the spec.
  [[nodiscard]] int64_t Allowed() const {
    if (observed_generation < meta.generation || disruptions_allowed < 0) return 0;
    return disruptions_allowed;
  }
};

}  // namespace fairlead::model
