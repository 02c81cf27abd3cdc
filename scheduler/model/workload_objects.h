// The other API objects that decisions read: Queue, PodGroup, PriorityClass, Topology, and our own
// NodePool and NodeRequest. Queue and PodGroup have the names, units and meanings of KAI
// (scheduling.run.ai). Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/condition.h"
#include "scheduler/model/disruption.h"
#include "scheduler/model/gpu_partition.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/pool_devices.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

// scheduling.run.ai/v2. Amounts are converted at the edge from KAI's units (GPU devices, milli-CPU,
// megabytes of 10^6) to base units. kUnlimited means no bound; an omitted number is 0, so an
// omitted limit is a limit of zero.
struct QueueResource {
  int64_t quota = 0;
  int64_t limit = 0;
  int64_t over_quota_weight_micro = 0;  // weight * 10^6
  // Not in KAI: how much of the unused quota other queues may use. Unlimited: all of it.
  int64_t lending_limit = kUnlimited;
  friend bool operator==(const QueueResource&, const QueueResource&) = default;
};

// What KAI's controllers count of a PodGroup and of a Queue, in base units: requests of the pods
// that are on their nodes, the non-preemptible part of it, and requests of all pods that have not
// ended. Users compare it; decisions never read it.
struct KaiCounts {
  ResourceList allocated, allocated_non_preemptible, requested;
  friend bool operator==(const KaiCounts&, const KaiCounts&) = default;
};

struct Queue {
  ObjectMeta meta;
  std::string display_name;
  std::string parent;  // empty: top of the tree
  int32_t priority = 100;
  QueueResource gpu, cpu, memory;
  // Not in KAI: any other resource name -> bounds. Absent: unlimited.
  std::vector<std::pair<std::string, QueueResource>> other;
  std::optional<absl::Duration> preempt_min_runtime;
  std::optional<absl::Duration> reclaim_min_runtime;
  std::optional<KaiCounts> status;        // absent: not counted
  std::vector<std::string> child_queues;  // of the status, in the object's order
  std::string invalid;                    // what is wrong with it; such a queue runs nothing
};

struct TopologyConstraint {
  std::string topology, required_level, preferred_level;
  friend bool operator==(const TopologyConstraint&, const TopologyConstraint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TopologyConstraint& c) {
    return H::combine(std::move(h), c.topology, c.required_level, c.preferred_level);
  }
};

struct SubGroup {
  std::string name;
  std::string parent;  // empty: the group itself
  std::optional<int32_t> min_member;
  std::optional<int32_t> min_sub_group;
  TopologyConstraint topology;
  friend bool operator==(const SubGroup&, const SubGroup&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SubGroup& s) {
    h = HashOptional(HashOptional(std::move(h), s.min_member), s.min_sub_group);
    return H::combine(std::move(h), s.name, s.parent, s.topology);
  }
};

enum class Preemptibility : uint8_t { kByPriority, kPreemptible, kNonPreemptible };
// "preemptible" and "non-preemptible"; anything else: kByPriority.
Preemptibility ParsePreemptibility(absl::string_view text);
// The word that ParsePreemptibility() reads; of kByPriority empty.
absl::string_view PreemptibilityWord(Preemptibility preemptibility);

// A duration as Go writes it, in annotations of workloads. None if it cannot be read, or is
// infinite.
std::optional<absl::Duration> ParseSpan(absl::string_view text);

// The queue that the label `project` names for pods of a node pool, as KAI has it; empty without
// a project.
std::string QueueOfProject(absl::string_view project, absl::string_view node_pool);

// An entry of a PodGroup's status.schedulingConditions: one per node pool, written by the scheduler
// of that pool. Entries of other pools are written back unchanged.
struct SchedulingCondition {
  std::string node_pool;
  std::string transition_id;  // a decimal number; the highest of all entries is the newest
  std::string json;           // the whole entry
  // The first of its reasons[], else its deprecated fields of the same names.
  std::string reason = {};
  std::string message = {};
  friend bool operator==(const SchedulingCondition&, const SchedulingCondition&) = default;
};

// The values of schedulingBackoff.
inline constexpr int32_t kTryForEver = -1;
inline constexpr int32_t kTryOnce = 1;  // in a node pool

// What a PodGroup says about how its pods are scheduled. Most groups differ in metadata and status
// alone, so ClusterState keeps one copy for all that say the same.
struct PodGroupSpec {
  std::string queue;
  std::string priority_class_name;
  Preemptibility preemptibility = Preemptibility::kByPriority;
  std::optional<int32_t> min_member;
  std::optional<int32_t> min_sub_group;
  std::vector<SubGroup> sub_groups;
  TopologyConstraint topology;
  bool mark_unschedulable = true;  // false: its pods' condition PodScheduled is not changed
  int32_t scheduling_backoff = kTryForEver;
  std::optional<absl::Duration> preemption_delay;
  std::optional<absl::Duration> staleness_grace_period;
  std::string node_pool;  // NodePoolOf() the group; set by ClusterState, not by decoders
  bool native = false;    // of scheduling.k8s.io, not of KAI: NativePodGroup
  // Its pods are evicted together or not at all (disruptionMode PodGroup of scheduling.k8s.io).
  bool disrupted_whole = false;
  std::string invalid;
  friend bool operator==(const PodGroupSpec&, const PodGroupSpec&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PodGroupSpec& s) {
    h = HashOptional(HashOptional(std::move(h), s.min_member), s.min_sub_group);
    h = HashOptional(HashOptional(std::move(h), s.preemption_delay), s.staleness_grace_period);
    return H::combine(std::move(h), s.queue, s.priority_class_name, s.preemptibility, s.sub_groups,
                      s.topology, s.mark_unschedulable, s.scheduling_backoff, s.node_pool, s.native,
                      s.disrupted_whole, s.invalid);
  }
};

// scheduling.run.ai/v2alpha2.
struct PodGroup : PodGroupSpec {
  ObjectMeta meta;
  std::string schedulability_hash;  // status.schedulability.hash, as the API server has it
  std::vector<SchedulingCondition> scheduling_conditions;  // of status, as the API server has them
  KaiCounts resources_status;                              // likewise
};

// PodGroup of scheduling.k8s.io/v1alpha2 (KEP-4671), the API server's own: read as a group of KAI's
// that is `native`. Its fields that decisions need are those of the Workload that it was made from.
struct NativePodGroup : PodGroup {
  // Condition PodGroupScheduled, as the API server has it; empty: it has none.
  std::string scheduled_status;  // True, False, Unknown
  std::string scheduled_reason, scheduled_message;
};

// The node pool whose entry of schedulingConditions is ours.
inline std::string NodePoolOf(const PodGroup& group) {
  const absl::string_view pool = group.meta.labels.Get(kNodePoolLabel);
  return pool.empty() ? kDefaultNodePool : std::string(pool);
}

// The failed attempt of a group with a single attempt (kTryOnce), from the newest of its scheduling
// conditions.
struct FailedAttempt {
  std::string node_pool, reason, message;
  friend bool operator==(const FailedAttempt&, const FailedAttempt&) = default;
};
// KAI's rule: the group has failed if the newest of all entries is of its present pool. So a group
// is tried again after a move to another pool, or after its entry is removed. An entry without a
// number counts as the oldest; of equal ones the first counts.
std::optional<FailedAttempt> FailedAttemptOf(const PodGroup& group);
// The same of a spec with its `node_pool`, and the conditions of the status.
std::optional<FailedAttempt> FailedAttemptOf(const PodGroupSpec& spec,
                                             const std::vector<SchedulingCondition>& conditions);

// Its labels are what a namespaceSelector reads.
struct Namespace {
  ObjectMeta meta;
};

struct PriorityClass {
  ObjectMeta meta;
  int32_t value = 0;
  bool global_default = false;
  bool never_preempts = false;  // preemptionPolicy is Never
};

// kai.scheduler/v1alpha1.
struct Topology {
  ObjectMeta meta;
  struct Level {
    std::string node_label, alias;
  };
  std::vector<Level> levels;  // outermost first
  std::string invalid;
};

// fairlead.dev/v1alpha1 NodeRequest: one node that the hook requests from a provider. Its name is
// the node's identity. The name is derived from the decision, so a repeated creation is a conflict
// and not a second node. These objects are the only memory of what was provisioned (invariant I5).
enum class NodeRequestPhase : uint8_t {
  kPending,     // written; the provider has not been asked (or we do not know)
  kLaunched,    // the provider accepted it
  kRegistered,  // the Node object exists
  kReady,       // usable: ready, startup taints gone, resources as announced
  kDraining,    // tainted for removal
  kFailed,      // the provider refused, or the node never came
  kGone         // the provider confirmed the removal
};

// A NodeRequest whose machine another one takes the place of.
struct ReplacedRequest {
  std::string name, uid;
  friend bool operator==(const ReplacedRequest&, const ReplacedRequest&) = default;
};

struct NodeRequest {
  ObjectMeta meta;
  std::string pool;           // NodePool, empty: the built-in default
  std::string provider;       // "kwok", ...
  std::string instance_type;  // name in the catalogue
  std::string zone;
  bool spot = false;
  std::string reservation;  // the catalogue's name of it; empty: the machine is not reserved
  int64_t price_micro_usd_per_hour = 0;
  bool price_known = true;  // false: 0 means unknown (an adopted node without a catalogue row)
  std::string queue;        // the queue of the first workload that needs it
  // The workloads that needed it when it was decided, for people: "namespace/name" of pods or pod
  // groups.
  std::vector<std::string> reason_workloads;
  // The machine was not requested for pods that wait, but for the pods of these.
  std::vector<ReplacedRequest> replaces;
  NodeRequestPhase phase = NodeRequestPhase::kPending;
  std::string node_name;  // of the Node object, once known
  // The provider's name for the machine, as in Node.spec.providerID; empty until the provider tells
  // it.
  std::string provider_id;
  // What the node really has, once it is usable; empty before. It may be less than the catalogue
  // said.
  ResourceList allocatable;
  std::string message;
  std::string failure;  // "", "Stockout", "Quota", "Auth", "Config", "Timeout", "Other"
  std::optional<absl::Time> launched_at, registered_at, ready_at, unneeded_since, failed_at;
  std::vector<std::string> finalizers;  // metadata.finalizers

  [[nodiscard]] const char* CapacityType() const {
    return !reservation.empty() ? "reserved" : spot ? "spot" : "on-demand";
  }
};

// The object that says how a provider makes nodes, as Karpenter's NodeClaim names it.
struct NodeClassRef {
  std::string group, kind, name;
  friend bool operator==(const NodeClassRef&, const NodeClassRef&) = default;
};

// fairlead.dev/v1alpha1 NodePool: which instance types may be provisioned, and up to what amount.
struct NodePool {
  ObjectMeta meta;
  std::string provider;
  NodeClassRef node_class;                  // of providers that need one; no name: the configured
  std::vector<std::string> instance_types;  // empty: the whole catalogue
  std::vector<std::string> zones;           // empty: all
  bool allow_spot = false;
  // Names of the reservations that its nodes may use; absent: all.
  std::optional<std::vector<std::string>> reservations;
  StringMap labels;  // on every node of the pool
  std::vector<Taint> taints;
  std::vector<Taint> startup_taints;
  int32_t weight = 0;  // higher is tried first at equal price
  int64_t max_nodes = kUnlimited;
  Disruption disruption;
  GpuPartition gpu_sharing;
  std::vector<PoolDevices> devices;
  Condition ready_condition;
  std::string invalid;
};

}  // namespace fairlead::model
