// What the priority of a workload means. Thread-safety: plain values.
#pragma once

#include <cstdint>

namespace fairlead::state {

enum class PriorityRules : uint8_t {
  // KAI's: its PriorityClass decides, and StateOptions::non_preemptible_priority says which
  // workloads are preemptible.
  kKai,
  // kube-scheduler's: spec.priority decides, all pods are preemptible, and
  // spec.preemptionPolicy counts. No pod is moved to make room for a pod without a higher
  // priority.
  kKubernetes,
};

}  // namespace fairlead::state
