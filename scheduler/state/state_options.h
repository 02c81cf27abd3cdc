// What ClusterState is told when it is made. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/pod.h"
#include "scheduler/state/priority_rules.h"

namespace fairlead::state {

// Short jobs first, without starving long ones. A workload is served as if it had come
// `duration_weight` times its duration later, so no workload that comes more than that after it is
// served before it; 0: first come, first served. Its duration is what its first pod says
// (PodDetails::expected_duration), at most kLongestDuration; `assumed_duration` if it says nothing.
// The order of two workloads never changes with time, as it would with the ratio of
// wait to duration that this approximates (highest response ratio next, Brinch Hansen 1971).
struct JobOrder {
  static constexpr int64_t kMaxDurationWeight = 1000;
  static constexpr absl::Duration kLongestDuration = absl::Hours(30 * 24);
  int64_t duration_weight = 0;  // 0..kMaxDurationWeight
  absl::Duration assumed_duration = absl::Hours(24);
};

// The default constraints of topology spread of a profile.
struct SpreadDefaults {
  std::vector<model::TopologySpreadConstraint> constraints;  // their selectors are not read
  model::SpreadOrigin origin = model::SpreadOrigin::kListed;
};

struct StateOptions {
  // Pods with one of these scheduler names are ours.
  std::vector<std::string> scheduler_names;
  // Some of these: schedulers that place pods on the nodes which Fairlead grants (guests). Only
  // those of their pods that name a queue or a pod group when they come are ours.
  std::vector<std::string> guest_schedulers = {};
  // Which profile places the pods of a scheduler name (model::PodSpec::profile); 0 if it is absent.
  std::map<std::string, uint16_t, std::less<>> profiles = {};
  std::string default_queue = "default-queue";
  // Priority >= this is non-preemptible unless the object says otherwise (KAI: 100).
  int32_t non_preemptible_priority = 100;
  int32_t default_priority = 50;
  // Pods here that request GPUs hold them for the pods that share them (KAI's binder makes them).
  std::string reservation_namespace = model::kReservationNamespace;
  // Whether pods that share GPUs are placed; off: refused on every node.
  bool place_gpu_shares = true;
  // Whether what pods have of the NUMA nodes of their machines is counted (plugin Numa).
  bool align_to_numa_nodes = false;
  // What scores read that most profiles do not: images of nodes and pods (ImageLocality), and
  // NodeInfo::used_for_scores (NodeResourcesFit, NodeResourcesBalancedAllocation).
  bool keep_images = false;
  bool sum_scoring_requests = false;
  JobOrder job_order = {};
  // By the position of the profile; one beyond the end has none. Empty: no profile has any.
  std::vector<SpreadDefaults> spread_defaults = {};
  // Likewise; one beyond the end has KAI's.
  std::vector<PriorityRules> priority_rules = {};
  // Keys of the labels of pods that plugins read (model::PodSpec::labels_for_plugins). Pods that
  // differ in one of these labels are of different classes.
  std::vector<std::string> plugin_labels = {};
};

}  // namespace fairlead::state
