// The rows of ClusterState. Read by everybody inside the core, changed by ClusterState alone.
// Thread-safety: none; they live on the owner's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// KAI's task states (facts 3.2). What each one holds:
//   state       node's used   node's releasing   queue's allocated
//   kPending    -             -                  -      has no node
//   kGated      -             -                  -      spec.schedulingGates
//   kPipelined  -             takes from it      yes    promised room that is still being released,
//                                                       or a node that is ordered; this cycle only
//   kBinding    yes           -                  yes    decided; the API server has not confirmed
//   kBound      yes           -                  yes    confirmed, not running yet
//   kRunning    yes           -                  yes
//   kReleasing  yes           yes                -      terminating
//   kSucceeded, kFailed       -                  -
enum class PodStatus : uint8_t {
  kPending,
  kGated,
  kPipelined,
  kBinding,
  kBound,
  kRunning,
  kReleasing,
  kSucceeded,
  kFailed,
};
inline constexpr int kPodStatusCount = 9;
const char* PodStatusName(PodStatus status);
// Counts against its queue: kPipelined, kBinding, kBound, kRunning.
constexpr bool IsAllocated(PodStatus s) {
  return s == PodStatus::kPipelined || s == PodStatus::kBinding || s == PodStatus::kBound ||
         s == PodStatus::kRunning;
}
// Takes room on its node now: kBinding, kBound, kRunning, kReleasing.
constexpr bool HoldsNode(PodStatus s) {
  return s == PodStatus::kBinding || s == PodStatus::kBound || s == PodStatus::kRunning ||
         s == PodStatus::kReleasing;
}
constexpr bool IsFinished(PodStatus s) {
  return s == PodStatus::kSucceeded || s == PodStatus::kFailed;
}

// All pods with equal specs share one class: its answers (fits, scores) hold for each of them.
struct PodClass {
  std::shared_ptr<const model::PodSpec> spec;
  model::Resources requests;  // with one of "pods"
  // What a pod of it counts against a queue: cpu, memory, GPUs of every vendor in kGpu.
  model::Resources charge;
  uint32_t users = 0;  // pods in the class; at 0 the id may be reused
};

enum class NodeKind : uint8_t {
  kReal,     // the API server has it
  kOrdered,  // requested from a provider, not usable yet: pods are promised to it, never bound
  kVirtual,  // exists only inside a planning step of the hook
};

struct NodeInfo {
  NodeId id = kNoId;
  NodeKind kind = NodeKind::kReal;
  bool exists = true;  // false: pods name it but the API server has not shown it (yet)
  bool usable = true;  // a real node that came from a request stays unusable until it is ready
  // What decisions see. For a node that is ordered, or registered but not usable yet, this is what was
  // promised, so that pods keep their place while devices and labels still come up.
  model::Node object;
  std::unique_ptr<model::Node> registered;  // what the API server shows, while it is not usable
  std::string node_request;  // the NodeRequest that it came from, or empty
  // Sorts as the name does, in one integer compare; changes when ClusterState::rank_epoch() does.
  uint64_t name_rank = 0;
  model::Resources allocatable;
  model::Resources used;       // by pods of every scheduler
  model::Resources used_by_others;  // the part of used that is not ours
  model::Resources releasing;  // the part of used that terminating pods hold
  model::Resources pipelined;  // promised out of idle + releasing, this cycle
  std::vector<PodId> pods;     // on it or promised to it, in order of arrival
  uint64_t version = 0;        // grows with any change to the node or to what is on it
  uint64_t object_version = 0; // grows when `object`, `kind`, `usable` or `exists` changes

  // allocatable - used.
  [[nodiscard]] model::Resources Idle() const { return allocatable - used; }
  // What a pod can be given now, promises respected.
  [[nodiscard]] model::Resources Available() const { return allocatable - used - pipelined; }
  // The same plus what is being released.
  [[nodiscard]] model::Resources Future() const {
    return allocatable - used + releasing - pipelined;
  }
  [[nodiscard]] const std::string& name() const { return object.meta.name; }
};

struct PodRecord {
  PodId id = kNoId;
  std::string ns, name, uid;
  std::string resource_version;
  PodClassId pod_class = kNoId;
  WorkloadId workload = kNoId;  // kNoId: not ours to schedule
  NodeId node = kNoId;
  PodStatus status = PodStatus::kPending;
  bool ours = false;      // our scheduler name, whether placed or not
  bool terminating = false;
  bool daemon = false;    // owned by a DaemonSet: does not keep a node
  bool do_not_disrupt = false;
  int64_t generation = 0;
  absl::Time creation = absl::InfinitePast();
  int32_t task_priority = 0;  // label kai.scheduler/task-priority
  bool has_task_priority = false;
  std::shared_ptr<const model::StringMap> labels;  // shared between pods with equal labels
  absl::Time started_at = absl::InfinitePast();  // annotation kai.scheduler/last-start-timestamp
  std::string invalid;
  std::string nominated_node;         // as the API server has it
  std::string condition_status, condition_reason;  // PodScheduled, as the API server has it
  // Of the verdict annotation, as the API server has it.
  bool has_verdict = false;
  std::string verdict_hash;
};

// What is scheduled as one: a PodGroup with its pods, or a pod without one.
struct Workload {
  WorkloadId id = kNoId;
  std::string ns, name;  // of the PodGroup or the pod
  std::string uid;
  bool is_group = false;
  std::shared_ptr<const model::PodGroup> group;  // null for a single pod, or if it does not exist yet
  std::string queue;  // as named by the objects; the default queue if none is
  int32_t priority = 0;
  bool preemptible = true;
  int64_t min_member = 1;
  absl::Time creation = absl::InfinitePast();
  std::vector<PodId> pods;  // alive, in task order: priority label, creation, uid
  uint32_t by_status[kPodStatusCount] = {};
  std::string invalid;
  uint64_t version = 0;  // grows with any change that a decision about it could depend on
  bool dirty = false;    // changed since ClusterState::TakeDirtyWorkloads()

  [[nodiscard]] uint32_t Count(PodStatus s) const { return by_status[static_cast<int>(s)]; }
  [[nodiscard]] uint32_t Active() const {
    return Count(PodStatus::kBinding) + Count(PodStatus::kBound) + Count(PodStatus::kRunning) +
           Count(PodStatus::kPipelined);
  }
};

}  // namespace fairlead::state
