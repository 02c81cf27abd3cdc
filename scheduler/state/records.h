// The rows of ClusterState. All modules of the core read them; ClusterState alone changes them.
// Thread-safety: none; they live on the owner's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "base/shared.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/gpu_devices.h"
#include "scheduler/state/ids.h"
#include "scheduler/state/numa_zones.h"
#include "scheduler/state/priority_rules.h"

namespace fairlead::state {

// KAI's task states (facts 3.2). What each one holds:
//   state       node's used   node's releasing   queue's allocated
//   kPending    -             -                  -      has no node
//   kGated      -             -                  -      spec.schedulingGates
//   kPipelined  -             takes from it      yes    promised what is still being released, or a
//                                                       node that is ordered; this cycle only
//   kBinding    yes           -                  yes    decided; the API server has not confirmed
//   kBound      yes           -                  yes    confirmed, not running yet
//   kRunning    yes           -                  yes
//   kReleasing  yes           yes                -      terminating
//   kStuckInReleasing yes     -                  -      terminating long after its grace period
//   kSucceeded, kFailed       -                  -
enum class PodStatus : uint8_t {
  kPending,
  kGated,
  kPipelined,
  kBinding,
  kBound,
  kRunning,
  kReleasing,
  kStuckInReleasing,
  kSucceeded,
  kFailed,
};
inline constexpr int kPodStatusCount = 10;
const char* PodStatusName(PodStatus status);
// Counts against its queue: kPipelined, kBinding, kBound, kRunning.
constexpr bool IsAllocated(PodStatus s) {
  return s == PodStatus::kPipelined || s == PodStatus::kBinding || s == PodStatus::kBound ||
         s == PodStatus::kRunning;
}
// Takes capacity of its node now: kBinding, kBound, kRunning, kReleasing, kStuckInReleasing.
constexpr bool HoldsNode(PodStatus s) {
  return s == PodStatus::kBinding || s == PodStatus::kBound || s == PodStatus::kRunning ||
         s == PodStatus::kReleasing || s == PodStatus::kStuckInReleasing;
}
constexpr bool IsFinished(PodStatus s) {
  return s == PodStatus::kSucceeded || s == PodStatus::kFailed;
}

// More than any node has of anything (2^50: a pebibyte, or 10^12 GPUs): sums over nodes stay far
// from the end of 64 bits whatever a node says of itself.
inline constexpr int64_t kMaxNodeAmount = int64_t{1} << 50;

// What a pod of the spec takes of a node, besides shares of GPUs; with one of "pods".
model::Resources RequestsOf(const model::PodSpec& spec, model::ResourceNames& names);

// All pods with equal specs share one class: its answers (fits, scores) hold for each of them.
struct PodClass {
  std::shared_ptr<const model::PodSpec> spec;
  model::Resources requests;  // with one of "pods"; what a node gives it besides shares of GPUs
  // What a pod of it counts against a queue: cpu, memory, and in kGpu GPUs of every vendor, MIG
  // slices and shares. A share by memory counts with the smallest GPU of the cluster here: what a
  // pod that runs counts is ClusterState::ChargeOf().
  model::Resources charge;
  model::Resources scoring;  // of spec->scoring_requests: cpu and memory, not below zero
  // charge[kGpu] with the largest GPU of the cluster: what limits are checked with beforehand.
  int64_t least_gpu_charge = 0;
  // What can be aligned to NUMA nodes; null: nothing.
  std::shared_ptr<const AlignedUnits> aligned;
  // KAI's placeholders for GPUs that are shared: their GPU is their group's.
  bool reservation = false;
  [[nodiscard]] bool SharesGpu() const { return reservation || spec->gpu_share.IsSet(); }
  uint32_t users = 0;   // pods in the class; at 0 the id may be reused
  uint64_t serial = 0;  // of this class alone, also when its id is reused
};

enum class NodeKind : uint8_t {
  kReal,     // the API server has it
  kOrdered,  // requested from a provider, not usable yet: pods are promised to it, never bound
  kVirtual,  // exists only inside a Transaction
};

struct NodeInfo {
  NodeId id = kNoId;
  NodeKind kind = NodeKind::kReal;
  bool exists = true;  // false: pods name it but the API server has not shown it (yet)
  bool usable = true;  // a real node that came from a request stays unusable until it is ready
  // What decisions see. For a node that is ordered, or registered but not usable yet, this is what
  // was promised, so that pods keep their place while devices and labels still come up.
  model::Node object;
  std::unique_ptr<model::Node> registered;  // what the API server shows, while it is not usable
  std::string node_request;                 // the NodeRequest that it came from, or empty
  std::vector<std::string> ordered_for;     // by it: "namespace/name" of workloads, the first few
  // Sorts as the name does, in one integer compare; changes with StateChange::Kind::kNodesRanked.
  uint64_t name_rank = 0;
  model::Resources allocatable;
  model::ResourceSum used;  // by pods of every scheduler
  // PodClass::scoring of the same pods; only if scores read it
  // (StateOptions::sum_scoring_requests).
  model::ResourceSum used_for_scores;
  model::ResourceSum used_by_others;  // what those not ours count in the terms of queues
  model::ResourceSum releasing;       // the part of used that terminating pods hold
  model::ResourceSum pipelined;       // promised out of idle + releasing, this cycle
  model::Resources for_queues;        // what it adds to ClusterState::total_for_queues()
  std::vector<PodId> pods;            // on it or promised to it, in order of arrival
  std::vector<GpuGroup> gpu_groups;   // GPUs that are shared, by id
  std::unique_ptr<NumaNode> numa;     // null: its NUMA nodes are not known
  int64_t gpu_memory_mib = 0;         // of one GPU; 0: unknown
  int64_t other_gpus_milli = 0;       // of allocatable, what queues count as GPUs besides kGpu
  bool gpus_by_claim = false;         // kGpu of allocatable are devices (extended_claims.h)
  uint64_t version = 0;               // grows with any change to the node or to what is on it
  uint64_t object_version = 0;        // grows when `object`, `kind`, `usable` or `exists` changes

  // Registered and usable: pods are bound to it. Pods are only promised to any other node.
  [[nodiscard]] bool TakesBindings() const { return kind == NodeKind::kReal && usable; }
  // allocatable - used.
  [[nodiscard]] model::Resources Idle() const { return allocatable - used.value(); }
  // What a pod can be given now, promises respected.
  [[nodiscard]] model::Resources Available() const {
    return allocatable - used.value() - pipelined.value();
  }
  // The same plus what is being released.
  [[nodiscard]] model::Resources Future() const {
    return allocatable - used.value() + releasing.value() - pipelined.value();
  }
  // One amount of it, without the others.
  [[nodiscard]] int64_t Future(model::ResourceIndex resource) const {
    const int64_t free = model::SaturatingAdd(allocatable[resource], -used[resource]);
    return model::SaturatingAdd(model::SaturatingAdd(free, releasing[resource]),
                                -pipelined[resource]);
  }
  [[nodiscard]] const std::string& name() const { return object.meta.name; }
};

// PodRecord::set of a pod whose label names a set that its group does not have.
inline constexpr int32_t kNoSet = -1;

// What few pods have; most take no memory for it.
struct PodDetails {
  std::string invalid;
  // The names of its scheduling gates, or what holds it back (model::Pod::held_by); empty: neither.
  std::string gate;
  // As the API server has them.
  std::string nominated_node;
  std::string verdict_hash;  // of the annotation
  // Reason of the condition PodScheduled; absent: the condition is not False.
  std::optional<std::string> waiting_reason;
  // Annotation fairlead.dev/expected-duration or spec.activeDeadlineSeconds, the shorter one;
  // infinite: neither says anything that can be read.
  absl::Duration expected_duration = absl::InfiniteDuration();
  bool wants_estimate = false;  // annotation fairlead.dev/estimate
  friend bool operator==(const PodDetails&, const PodDetails&) = default;
};

// In the order of use: what every decision about a pod reads comes first.
struct PodRecord {
  PodId id = kNoId;
  PodClassId pod_class = kNoId;
  WorkloadId workload = kNoId;  // kNoId: not ours to schedule
  NodeId node = kNoId;
  // Index in Workload::sets, by label kai.scheduler/subgroup-name; without one the root. kNoSet:
  // only this pod is refused, and `invalid` says why.
  int32_t set = 0;
  PodStatus status = PodStatus::kPending;
  bool ours = false;  // our scheduler name, whether placed or not
  bool terminating = false;
  bool phase_running = false;  // as the API server has it: budgets protect it only then
  bool ready = false;          // as the API server has it
  bool daemon = false;         // owned by a DaemonSet: does not keep a node
  // Read seldom: bits, for the size of a row.
  bool do_not_disrupt : 1 = false;  // model::MustStay: it is not moved, nor its node emptied
  bool has_controller : 1 = false;  // something makes another one in its place
  bool runs_to_end : 1 = false;     // model::Pod
  bool has_task_priority : 1 = false;
  bool has_verdict = false;  // the annotation, as the API server has it
  // started_under is what the binding wrote, and was not compared with the queues that there are.
  bool started_under_unchecked = false;
  // As what it runs while the object of its PodGroup does not exist: as its workload was when the
  // pod was started, or when that object was deleted, whichever came last. kByPriority: not known.
  // While the object exists, what it says counts.
  model::Preemptibility started_as = model::Preemptibility::kByPriority;
  uint16_t scheduler = 0;     // of a pod of ours: index into StateOptions::scheduler_names
  int32_t task_priority = 0;  // label kai.scheduler/task-priority
  // status.startTime in Unix seconds, which is all that it has; kNoStart: it has none yet.
  static constexpr uint32_t kNoStart = 0xffffffffu;
  uint32_t start_s = kNoStart;
  int64_t generation = 0;
  absl::Time creation = absl::InfinitePast();
  absl::Time started_at = absl::InfinitePast();  // annotation kai.scheduler/last-start-timestamp
  model::StringMap labels;                       // shares its memory with equal ones
  GpuPick gpu_groups;                            // on its node, for a pod that shares GPUs
  // The queue that it was started under, as the binding wrote it or once that is settled
  // (ClusterState::SettleStarts): it stays charged to this queue while it has a node, whatever its
  // objects say later. Null: the queue of its workload.
  Shared<std::string> started_under;
  std::string uid, ns, name;
  Boxed<PodDetails> details;
};

// A node of a workload's tree of sub-groups; gang_sets.h has the rules.
struct GangSet {
  std::string name;  // empty: the workload itself
  int32_t parent = -1;
  std::vector<int32_t> children;         // in the order of the object
  int64_t min_member = 0;                // active pods of its own, without those of its children
  std::optional<int64_t> min_sub_group;  // children that have to be satisfied; absent: all
  model::TopologyConstraint topology;
  friend bool operator==(const GangSet&, const GangSet&) = default;
};

// The sets of a workload: 0 is the workload itself, the only one without sub-groups. That of a lone
// pod (SingleSet()) takes no memory. Complexity: a copy is O(1).
class GangTree {
 public:
  GangTree() = default;
  explicit GangTree(std::vector<GangSet> sets);

  [[nodiscard]] const std::vector<GangSet>& list() const { return sets_ ? *sets_ : Single(); }
  const GangSet& operator[](size_t set) const { return list()[set]; }
  [[nodiscard]] const GangSet& front() const { return list().front(); }
  [[nodiscard]] size_t size() const { return list().size(); }
  [[nodiscard]] auto begin() const { return list().begin(); }
  [[nodiscard]] auto end() const { return list().end(); }

 private:
  static const std::vector<GangSet>& Single();
  Shared<std::vector<GangSet>> sets_;
};

// What is odd about a PodGroup, in words that name object and field.
struct GroupNotes {
  std::string sets_problem;  // its sub-groups are no tree: part of Workload::invalid
  std::string sets_warning, stale_warning, eviction_warning;
};

// What few workloads have; most take no memory for it.
struct WorkloadDetails {
  int64_t sort_key = 0;  // of a QueueSort plugin: before the rest of the order in its queue
  std::string invalid;
  std::string warning;  // what is ignored in its objects, for people; it runs all the same
  // How long it waits before others are evicted for it: the PodGroup's, else the first pod's
  // annotation. Not negative.
  absl::Duration preemption_delay = absl::ZeroDuration();
  int64_t min_member = 1;                   // as the PodGroup says; what counts is in `sets`
  std::shared_ptr<const GroupNotes> notes;  // null: nothing is odd about its PodGroup
  // Since when it runs below its minimum: annotation kai.scheduler/stale-podgroup-timestamp of the
  // PodGroup, or what SetStaleSince() said last. Infinite future: it does not, or nothing said so.
  absl::Time stale_since = absl::InfiniteFuture();
  // How long it may: the PodGroup's, else the first pod's annotation. Negative: for ever; absent:
  // the scheduler's default.
  std::optional<absl::Duration> staleness_grace;
  // When a pod of the group was evicted last: annotation kai.scheduler/last-eviction-timestamp of
  // the PodGroup, or what SetLastEviction() said last.
  absl::Time last_eviction = absl::InfinitePast();
  // Of a PodGroup with schedulingBackoff 1; what its status says, or SetFailedAttempt() did before
  // it could say so. Null: it is (still, or again) to be tried.
  std::shared_ptr<const model::FailedAttempt> failed_attempt;
  friend bool operator==(const WorkloadDetails&, const WorkloadDetails&) = default;
};

// What schedulers wrote onto a PodGroup, as the API server has it. Few groups have any of it.
struct GroupStatus {
  std::string stale_since, last_eviction;                         // annotations, as written
  std::string schedulability_hash;                                // as in model::PodGroup
  std::vector<model::SchedulingCondition> scheduling_conditions;  // likewise
  friend bool operator==(const GroupStatus&, const GroupStatus&) = default;
};

// Most workloads have few pods: up to four take no memory of their own.
using PodIds = absl::InlinedVector<PodId, 4>;

// What is scheduled as one: a PodGroup with its pods, or a pod without one. In the order of use:
// what is read whenever a pod of it moves comes first, what only groups have last.
struct Workload {
  WorkloadId id = kNoId;
  int32_t priority = 0;
  bool is_group = false;
  bool preemptible = true;
  PriorityRules priority_rules = PriorityRules::kKai;
  // Bits, for the size of a row.
  bool may_preempt : 1 = true;  // pods may be evicted for it
  // One valid pod without a PodGroup, a preemption delay or a warning: there is nothing to read in
  // `sets`, which is SingleSet(), and `details`.
  bool plain : 1 = false;
  bool queue_named : 1 = false;  // some object names `queue`; false: it is the default
  // Of its pods of which PodRecord::started_as is known the oldest: it decides for all while the
  // workload LacksGroup(). By creation, which tenants do not write. kNoId: none is known.
  PodId oldest_start = kNoId;
  uint64_t version = 0;  // grows with any change that a decision about it could depend on
  uint32_t by_status[kPodStatusCount] = {};
  // By set: pods of its own that are IsAllocated().
  absl::InlinedVector<int32_t, 4> active = absl::InlinedVector<int32_t, 4>(1, 0);
  absl::Time creation = absl::InfinitePast();
  absl::Time turn = absl::InfinitePast();  // its age in queue order: state::JobOrder
  PodIds pods;                             // alive, in task order: priority label, creation, uid
  std::string uid;
  std::string queue;  // as named by the objects; the default queue if none is

  std::string ns, name;  // of the PodGroup or the pod
  GangTree sets;
  // What its PodGroup says; one for all that say the same. Null for a single pod, or if it does not
  // exist yet.
  Shared<model::PodGroupSpec> group;
  Boxed<GroupStatus> group_status;
  int64_t generation = 0;  // of the PodGroup
  // Annotation kai.scheduler/last-start-timestamp of the PodGroup; infinite past: none, or no time.
  absl::Time group_start = absl::InfinitePast();
  Boxed<WorkloadDetails> details;

  // `preemptible`, as a word of its own.
  [[nodiscard]] model::Preemptibility preemptibility() const {
    return preemptible ? model::Preemptibility::kPreemptible
                       : model::Preemptibility::kNonPreemptible;
  }
  // The PodGroup that its pods name does not exist (yet, or any more).
  [[nodiscard]] bool LacksGroup() const { return is_group && group == nullptr; }
  [[nodiscard]] uint32_t Count(PodStatus s) const { return by_status[static_cast<int>(s)]; }
  // Consolidation may move its pods, and others' for it.
  [[nodiscard]] bool IsMovable() const { return priority_rules == PriorityRules::kKai; }
  [[nodiscard]] uint32_t Active() const {
    return Count(PodStatus::kBinding) + Count(PodStatus::kBound) + Count(PodStatus::kRunning) +
           Count(PodStatus::kPipelined);
  }
  // Left out of every cycle: its one attempt failed. (Pods of a group that run are not affected.)
  [[nodiscard]] bool GaveUp() const {
    return !plain && details->failed_attempt != nullptr && Active() == 0;
  }
  // No pod is evicted for this workload before it; in the past if it has no delay.
  [[nodiscard]] absl::Time PreemptionDelayEnd() const {
    if (plain || details->preemption_delay == absl::ZeroDuration()) return absl::InfinitePast();
    return std::max(creation, details->last_eviction) + details->preemption_delay;
  }
};

}  // namespace fairlead::state
