// The one model of the cluster. Events change it, transactions try decisions on it, readers walk
// its tables. The cost of a change depends on what changes, not on what exists.
//
// Ownership: owns all rows; hands out const references that are valid until the next change.
// Thread-safety: none; one thread owns it (design section 2).
// Errors: objects that make no sense are kept with their `invalid` text; nothing here fails on
// input.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "base/prefetch.h"
#include "base/shared.h"
#include "base/shared_pool.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/default_selectors.h"
#include "scheduler/state/device_allocator.h"
#include "scheduler/state/disruption_budgets.h"
#include "scheduler/state/grace_ends.h"
#include "scheduler/state/records.h"
#include "scheduler/state/rows.h"
#include "scheduler/state/selecting_terms.h"
#include "scheduler/state/state_options.h"
#include "scheduler/state/volumes.h"

namespace fairlead::state {

struct ClaimFault;  // claim_fault.h

// What an event did, for the caller's dirty tracking. All false: nothing that a decision reads
// changed.
struct Change {
  bool workloads = false;  // something waits that did not, or the other way round
  bool capacity = false;   // capacity appeared or disappeared
  bool policy = false;     // priority classes, topology
  [[nodiscard]] bool Any() const { return workloads || capacity || policy; }
  Change& operator|=(const Change& other) {
    workloads |= other.workloads;
    capacity |= other.capacity;
    policy |= other.policy;
    return *this;
  }
};

struct WorkloadTerms;  // what the objects of a workload say about it (workloads.cc)
struct PriorityTerms;  // what follows of it for its priority

class ClusterState {
 public:
  explicit ClusterState(StateOptions options);
  ClusterState(const ClusterState&) = delete;
  ClusterState& operator=(const ClusterState&) = delete;
  ~ClusterState();

  // Not owned; told from now on, after those that subscribed before it.
  void Subscribe(StateSubscriber* subscriber);
  void Unsubscribe(StateSubscriber* subscriber);
  // The table of queue objects is queues::QueueTree, which the state does not know. The engine,
  // which has both, puts the changes of that table into the log (kQueue).
  void TellQueue(uint32_t queue, bool reshaped) {
    Tell({.kind = StateChange::Kind::kQueue, .reshaped = reshaped, .row = queue});
  }

  // ---- events
  // ------------------------------------------------------------------------------------
  Change UpsertPod(const model::Pod& pod);
  Change RemovePod(absl::string_view ns, absl::string_view name, absl::string_view uid);
  Change UpsertNode(const model::Node& node);
  Change RemoveNode(absl::string_view name, absl::string_view uid);
  Change UpsertPodGroup(const model::PodGroup& group);
  Change RemovePodGroup(absl::string_view ns, absl::string_view name, absl::string_view uid);
  Change UpsertPriorityClass(const model::PriorityClass& priority_class);
  Change RemovePriorityClass(absl::string_view name);
  // An invalid one is kept with its text, for the verdicts of workloads that name it. `uid` empty:
  // any.
  Change UpsertTopology(const model::Topology& topology);
  Change RemoveTopology(absl::string_view name, absl::string_view uid = "");
  // Labels of a namespace, which terms of pod affinity may select by (namespaces.cc). Until they
  // are readable no term selects by them: model::Selection::kUnknown. O(classes) while some class
  // has such a term, and O(pods) if it selects others now.
  Change UpsertNamespace(const model::Namespace& ns);
  Change RemoveNamespace(absl::string_view name);
  Change SetNamespacesReadable(bool readable);
  // Services and controllers, which give pods the default constraints of their profile; nothing is
  // done unless options().spread_defaults. O(pods of the namespace). An invalid one is as none.
  Change UpsertSpreadSource(const model::SpreadSource& object);
  // `kind`: one of model::IsSpreadSource().
  Change RemoveSpreadSource(model::Kind kind, absl::string_view ns, absl::string_view name);
  // NUMA nodes of the machine of that name; nothing is done unless options().align_to_numa_nodes.
  // An invalid one is as none.
  Change UpsertNodeTopology(const model::NodeResourceTopology& topology);
  Change RemoveNodeTopology(absl::string_view name, absl::string_view uid = "");
  Change UpsertDisruptionBudget(const model::PodDisruptionBudget& budget);
  Change RemoveDisruptionBudget(absl::string_view ns, absl::string_view name,
                                absl::string_view uid = "");
  // Objects of dynamic resource allocation. What is in the way of a pod with claims is in its
  // class's spec (claim_problem); what its claims ask for is among the class's requests.
  Change UpsertDeviceObject(const model::DeviceObject& object);
  Change RemoveDeviceClass(absl::string_view name);
  Change RemoveResourceSlice(absl::string_view name);
  Change RemoveDeviceTaintRule(absl::string_view name);
  Change RemoveResourceClaim(absl::string_view ns, absl::string_view name);
  // Whether the API server shows these objects at all; pods with claims wait with that reason if it
  // does not. True until told.
  Change SetClaimsReadable(bool readable);
  // What extenders said about nodes for the pod, which becomes part of its class until other
  // answers are set (empty: none) or it is seen on a node. Nothing is done for a pod that is not
  // ours. O(1), and what a change of the class costs.
  Change SetNodeAnswers(PodId pod, const model::NodeAnswers& answers);
  // A filter or score says something else about nodes for pods of the class than it did, although
  // neither the nodes nor the pods have changed. Nothing is told if the class is another one by
  // now.
  Change AnswersChanged(PodClassId id, uint64_t serial);

  // Objects of storage. What a pod's volumes ask of its node is in its class's spec (volume_needs).
  // O(pods that are classed anew): of a claim its pods, of a volume its claim's; if what the
  // unbound claims of a storage class can be given changes, the pods of all of these.
  Change UpsertVolumeObject(const model::VolumeObject& object);
  // `kind`: one of model::IsVolumeKind().
  Change RemoveVolumeObject(model::Kind kind, absl::string_view ns, absl::string_view name);
  // Whether claims, volumes and storage classes can be read; pods with claims wait with that reason
  // if they cannot. True until told.
  Change SetVolumesReadable(bool readable);

  // A node that a provider has been asked for, for these workloads ("namespace/name"). The real
  // node takes its place when it registers under the same name. Idempotent.
  Change UpsertOrderedNode(const model::Node& expected, absl::string_view node_request,
                           const std::vector<std::string>& ordered_for = {});
  Change RemoveOrderedNode(absl::string_view name);
  // A real node that came from a request is held back until it is ready for use (startup taints,
  // devices); `usable` false keeps pods promised to it but unbound.
  Change SetNodeUsable(NodeId node, bool usable);

  // No pod may join the pods that share this GPU: what they and its reservation pod say of the
  // device contradicts. Holds, also while the group has no row, until it is told otherwise.
  Change CloseGpuGroup(const std::string& node, const std::string& group, bool closed);

  // What runs of the workload was started under the queue that it has now, if nothing earlier
  // says otherwise: from now on it stays charged to that queue until it ends. What its binding says
  // (kStartedUnderAnnotation) is earlier, and holds if `is_queue` says that it is a queue. To be
  // called when every object that names a queue has been seen, after pods got nodes. A pod for
  // which nothing names a queue, and that we did not start, still follows its objects. If the
  // object of its PodGroup does not exist, what runs stays as preemptible as it is, too. O(pods of
  // the workload).
  void SettleStarts(WorkloadId workload, const std::function<bool(const std::string&)>& is_queue);
  // This process decides from now on. It knows what it binds, so what annotations say of pods that
  // get a node from now on is not read: another scheduler bound them.
  void SetDeciding() { deciding_ = true; }
  // The queue that was above `queue` when one of its pods was started, by the annotations that were
  // read; of several the smallest name, empty if none says.
  [[nodiscard]] std::string RecordedParentOf(absl::string_view queue) const;

  // The binding of a pod failed for good: it waits again.
  Change ForgetBinding(PodId pod);
  // When a pod got its node, for minimum runtimes; the binding writes the same onto the pod.
  void SetStartedAt(PodId pod, absl::Time at) { pods_[pod].started_at = at; }
  // When the current run of a workload began. KAI writes it on the group, Fairlead on every pod
  // that it binds: if each active pod says when it started, the group's annotation is of a former
  // run, and the first of the pods counts. Infinite past if nothing of it runs, or if that is
  // unknown.
  [[nodiscard]] absl::Time StartOf(const Workload& workload) const;
  // It is decided that the workload is stale since then (infinite future: it is not); the
  // annotation of its PodGroup is written with the same. Holds until that annotation changes.
  void SetStaleSince(WorkloadId workload, absl::Time since);
  // A pod of the workload was asked to go; the annotation of its PodGroup is written with the same,
  // which has whole seconds only.
  void SetLastEviction(WorkloadId workload, absl::Time at);
  // The group's one attempt failed; its status is written with the same. Holds until the group is
  // moved to another node pool or may be tried for ever, or its status has lost what it had.
  void SetFailedAttempt(WorkloadId workload, model::FailedAttempt attempt);
  // An eviction was asked for and accepted: the pod counts as terminating until the API server says
  // so.
  Change AssumeEvicted(PodId pod);
  Change ForgetEviction(PodId pod);
  // A pod that waits is held back as if its model::Pod::held_by were `why`, until its next event;
  // or no longer, if that is what holds it back.
  Change HoldBack(PodId pod, const std::string& why, bool held);
  // Terminating pods whose grace period ended at `grace_end` or before are stuck from now on: they
  // hold their capacity, and none of it counts as being released. O(pods that become stuck).
  Change MarkStuck(absl::Time grace_end);
  // The eviction of a pod that is still on its node is decided, and will be asked for: it counts
  // against its budgets until their status shows it, or ForgetEviction().
  void ChargeBudgets(PodId pod);

  // ---- tables
  // ------------------------------------------------------------------------------------
  [[nodiscard]] const PodRecord& pod(PodId id) const { return pods_[id]; }
  [[nodiscard]] const NodeInfo& node(NodeId id) const { return nodes_[id]; }
  [[nodiscard]] const Workload& workload(WorkloadId id) const { return workloads_[id]; }
  [[nodiscard]] const PodClass& pod_class(PodClassId id) const { return classes_[id]; }
  [[nodiscard]] const PodClass& class_of(PodId id) const { return classes_[pods_[id].pod_class]; }
  // What the pod counts against its queue: as its class, but a share by memory counts with the GPUs
  // of the node that it is on.
  [[nodiscard]] model::Resources ChargeOf(const PodRecord& pod) const;
  // The queue that the pod counts against while it has a node. The pod has to be ours.
  [[nodiscard]] const std::string& QueueOf(const PodRecord& pod) const {
    return pod.started_under != nullptr ? *pod.started_under : workloads_[pod.workload].queue;
  }
  // The scheduler name of a pod of ours; of another one empty.
  [[nodiscard]] absl::string_view SchedulerNameOf(const PodRecord& pod) const;
  // Whether a pod that comes as this one would be ours.
  [[nodiscard]] bool IsOurs(const model::Pod& pod) const;
  // The spec by which a pod of ours like this would be classed. Nothing is kept of it.
  [[nodiscard]] std::shared_ptr<const model::PodSpec> SpecFor(const model::Pod& pod) const;
  // What WorkloadDetails::sort_key is, from now on; before the first object comes. It follows from
  // the state and the workload alone.
  void SetQueueSort(std::function<int64_t(const Workload&)> sort_key) {
    queue_sort_ = std::move(sort_key);
  }

  // A bond of some class (model/pod_terms.h) selects the pod, so where it is matters for pods on
  // other nodes.
  [[nodiscard]] bool SelectedByBond(const PodRecord& pod) const {
    return !bonds_.IsEmpty() && bonds_.Select(pod.ns, pod.labels);
  }

  // True if another scheduler binds the pod (StateOptions::guest_schedulers).
  [[nodiscard]] bool IsGuestScheduler(absl::string_view name) const;
  [[nodiscard]] bool IsGuest(const PodRecord& pod) const;
  // ChargeOf()[kGpu], without the rest.
  [[nodiscard]] int64_t GpuChargeOf(const PodRecord& pod) const;
  // kNoId if absent.
  [[nodiscard]] PodId FindPod(absl::string_view ns, absl::string_view name) const;
  [[nodiscard]] NodeId FindNode(absl::string_view name) const;
  [[nodiscard]] WorkloadId FindGroup(absl::string_view ns, absl::string_view name) const;
  // Null if absent. Valid until the next change.
  [[nodiscard]] const model::Topology* FindTopology(absl::string_view name) const;
  [[nodiscard]] const model::Topology& topology(TopologyId id) const { return topologies_[id]; }
  [[nodiscard]] const model::PriorityClass& priority_class(PriorityClassId id) const {
    return priority_classes_[id];
  }
  // kNoId if absent.
  [[nodiscard]] PriorityClassId FindPriorityClass(absl::string_view name) const {
    const auto it = priority_class_index_.find(name);
    return it == priority_class_index_.end() ? kNoId : it->second;
  }
  [[nodiscard]] size_t priority_class_count() const { return priority_class_index_.size(); }
  [[nodiscard]] const DeviceAllocator& devices() const { return devices_; }
  [[nodiscard]] const DisruptionBudgets& budgets() const { return budgets_; }
  // When the next grace period of a terminating pod ends; infinite future if none does. A pod that
  // is stuck already does not count.
  [[nodiscard]] absl::Time NextGraceEnd() const { return grace_ends_.First(); }
  // The budgets that the eviction API would ask for this pod: none for one that does not run yet,
  // or that is not ready and may go for that.
  [[nodiscard]] BudgetIds BudgetsOf(const PodRecord& pod) const;
  // The pod's claims that exist, with the devices that they hold or are decided to get: what has to
  // be written before the pod is bound.
  [[nodiscard]] std::vector<model::ResourceClaim> ClaimsOf(PodId pod) const;
  // What devices of a class give of a pod's requests.
  struct BackedResource {
    std::string resource, device_class;
    int64_t devices = 0;
    friend bool operator==(const BackedResource&, const BackedResource&) = default;
  };
  // The claim that gives a pod its extended resources (extended_claims.h).
  struct ExtendedClaim {
    std::string key;        // one of ClaimKeysOf(); empty: it needs none on any node
    std::string told;       // the name in its status; empty: none
    bool exists = false;    // the API server shows it
    bool by_claim = false;  // on its node, or the one decided: else it needs none there
    std::vector<BackedResource> resources;
  };
  [[nodiscard]] ExtendedClaim ExtendedClaimOf(PodId pod) const;
  [[nodiscard]] bool IsExtendedClaim(absl::string_view key, PodId pod) const;
  // "ns/name" of all its claims. Valid until the next change.
  [[nodiscard]] const std::vector<std::string>& ClaimKeysOf(PodId pod) const;
  [[nodiscard]] const Volumes& volumes() const { return volumes_; }
  // Ids of the claims that the pod's volumes name, in the order of the volumes. Valid until the
  // next change.
  [[nodiscard]] const std::vector<VolumeClaimId>& VolumeClaimsOf(PodId pod) const;
  // Pods of the claim that have a node; without those that terminate if `staying`. O(pods of the
  // claim).
  [[nodiscard]] size_t UsersWithNode(const VolumeClaimRow& claim, bool staying) const;
  // What the pod has of the NUMA nodes of its machine, as known or decided. Empty: nothing, or that
  // is not known.
  [[nodiscard]] std::vector<model::ZoneAmounts> ZonesOf(PodId pod) const;
  // The same by position.
  [[nodiscard]] ZonePick PickOfPod(PodId pod) const;
  // NUMA nodes of the machine that has most of them; 0: none is known.
  [[nodiscard]] size_t most_zones() const {
    return machines_by_zones_.empty() ? 0 : machines_by_zones_.rbegin()->first;
  }
  // Texts that rows share: specs of groups, annotations of pods, labels of pods. O(1).
  [[nodiscard]] size_t shared_values() const {
    return group_specs_.size() + hint_pool_.size() + labels_index_.size();
  }
  // Keys of claims that are allocated for pods of ours alone that all wait for a node: no pod uses
  // them. O(claims).
  [[nodiscard]] std::vector<std::string> IdleClaims() const;
  // Ids in the order of node names: the one iteration order that decisions may use. Nodes that a
  // Transaction added are at the end; indexes over nodes leave them out.
  [[nodiscard]] const std::map<std::string, NodeId, std::less<>>& nodes_by_name() const {
    return nodes_by_name_;
  }
  // Live workloads in the order of ids.
  template <typename F>
  void ForEachWorkload(F f) const {
    constexpr size_t kAhead = 16;
    for (size_t i = 0; i < workloads_.size(); ++i) {
      if (i + kAhead < workloads_.size()) Prefetch(workloads_[i + kAhead]);
      if (workloads_[i].id != kNoId) f(workloads_[i]);
    }
  }
  template <typename F>
  void ForEachPod(F f) const {
    for (const PodRecord& p : pods_) {
      if (p.id != kNoId) f(p);
    }
  }
  [[nodiscard]] size_t pod_count() const { return live_pods_; }
  [[nodiscard]] size_t node_count() const { return nodes_by_name_.size(); }
  [[nodiscard]] size_t workload_count() const { return live_workloads_; }
  [[nodiscard]] const model::ResourceNames& resource_names() const { return names_; }
  [[nodiscard]] model::ResourceNames& resource_names() { return names_; }
  [[nodiscard]] const StateOptions& options() const { return options_; }

  // Sum of allocatable over real nodes that pods may go to (ready, not cordoned), less what pods of
  // other schedulers use there, but of no node less than zero: what fair share divides (facts 3.3).
  // GPUs of every vendor and MIG slices count in kGpu. Kept up to date, O(1).
  [[nodiscard]] const model::Resources& total_for_queues() const {
    return total_for_queues_.value();
  }
  // Nodes with a taint of effect PreferNoSchedule.
  [[nodiscard]] size_t softly_tainted_nodes() const { return softly_tainted_nodes_; }
  // Counts the entries of the change log, and the changes of device objects that have none: equal
  // values mean that nothing changed in between.
  [[nodiscard]] uint64_t version() const { return version_; }

  // Recomputes every derived number from the rows and compares; the text of the first difference,
  // or empty. For tests and for the invariant check of the simulator; O(everything).
  [[nodiscard]] std::string CheckConsistency() const;
  // Every row as text in a fixed order: equal texts mean equal states. For the undo property.
  [[nodiscard]] std::string Dump() const;

 private:
  friend class Transaction;

  // ---- the primitive that both events and transactions use
  static constexpr size_t kAtEnd = static_cast<size_t>(-1);
  // What decisions gave the claims that the pod carries, claim by claim; and the same again, for
  // undo.
  struct HeldDevices {
    std::vector<std::vector<std::string>> devices, last;  // by claim
  };
  using VolumeDecisions = std::vector<VolumeDecision>;  // by claim of the pod
  // What few pods have: kept apart, so that the log of the others stays small.
  struct HeldBesides {
    HeldDevices devices;
    ZonePick zones;
    VolumeDecisions volumes;
  };
  // An entry of the log about a pod, with what it takes to reverse it exactly.
  struct PodMove {
    StateChange change;
    size_t from_position = kAtEnd;  // in the list of `from_node`; kAtEnd: it stays or had none
    GpuPick from_groups;
    std::shared_ptr<const HeldBesides> from_besides;  // null: nothing
  };
  // Moves a pod to (status, node), updates every derived number of the rows, and tells the entries.
  // `node` is kNoId if the status holds none. `position` is its place in the node's list.
  // `wanted_groups`: its GPU groups there, if it shares GPUs; null keeps them while it stays on its
  // node. `move` may be null; it is filled if not.
  void MovePod(PodId id, PodStatus status, NodeId node, size_t position = kAtEnd,
               const GpuPick* wanted_groups = nullptr, PodMove* move = nullptr);
  // Null: the pod has no claims, no volumes and no NUMA nodes.
  [[nodiscard]] std::shared_ptr<const HeldBesides> BesidesOf(PodId pod) const;
  // The pod is where the move found it. Moves are reversed in the reverse order.
  void ReverseMove(const PodMove& move);
  // Its GPU groups on the node; a reservation pod has one of its own.
  [[nodiscard]] GpuPick GroupsAt(const PodRecord& pod, NodeId node, const GpuPick* wanted) const;
  void ApplyToNode(const PodRecord& pod, PodStatus status, NodeId node, bool add);
  // The place that it had in the list of its node; kAtEnd if it has no node.
  size_t TakeFromList(const PodRecord& pod);
  void PutIntoList(PodId pod, NodeId node, size_t position);
  // In its workload: it had status `former` before.
  void CountStatus(const PodRecord& pod, PodStatus former);
  // NUMA nodes (pod_zones.cc).
  struct PodZones {
    ZonePick pick;                             // on its node
    std::vector<model::ZoneAmounts> recorded;  // its annotation
    NodeId recorded_on = kNoId;
  };
  void ApplyZones(const PodRecord& pod, PodStatus status, NodeInfo& node, bool add);
  // For a pod that is about to be in that status on that node, which does not count it now.
  void ChooseZones(const PodRecord& pod, PodStatus status, NodeId node);
  void SetPick(PodId pod, ZonePick pick);
  // The pod, which is on a node, has exactly these there.
  void RestoreZones(PodId pod, const ZonePick& pick);
  // True if the pod has others on its node than before.
  bool ReadZones(const PodRecord& record, const model::Pod& pod, NodeId node);
  [[nodiscard]] const model::NodeResourceTopology* TopologyOf(const NodeInfo& node) const;
  // Makes node.numa again from the topology, and what its pods have of it.
  void RenewNuma(NodeInfo& node);
  void LearnTopology(const NodeInfo& node);
  void CountZones(const model::NodeResourceTopology& topology, bool add);
  [[nodiscard]] std::string CheckZones(const NodeInfo& node) const;
  // Shares of GPUs (gpu_shares.cc).
  // No pod may join the GPU.
  [[nodiscard]] bool IsClosedGpu(const std::string& node, const std::string& group) const;
  void ApplyToGroups(const PodRecord& pod, PodStatus status, NodeInfo& node, bool add);
  [[nodiscard]] model::Resources ChargeToOthers(const PodRecord& pod, const NodeInfo& node) const;
  [[nodiscard]] GpuPick GroupsFromApi(const PodRecord& record, const model::Pod& pod,
                                      NodeId node) const;
  void SetGpuMemory(NodeInfo& node, int64_t mib);
  void SetCharge(PodClass& pod_class);
  void RenewMemoryCharges();
  // Affinity terms of some pods select others (selected_pods.cc).
  void AddTerms(const model::PodSpec& spec);
  void DropTerms(const model::PodSpec& spec);
  // The spec that `pod` is classed by, if that is not pod.spec itself.
  [[nodiscard]] std::optional<model::PodSpec> SelectedSpec(const model::PodSpec& spec,
                                                           const model::StringMap& labels) const;
  bool ReclassSelected();
  // Terms that select namespaces by their labels (namespaces.cc).
  static bool ReadsNamespaces(const model::PodSpec& spec);
  [[nodiscard]] const model::NamespaceNames& NamespacesOf(
      const model::LabelSelector& selector) const;
  void ResolveNamespaces(model::PodSpec& spec) const;
  // Does some class select a namespace with the one labels and not with the others? Null: there is
  // no such namespace.
  [[nodiscard]] bool SelectsOtherwise(const model::StringMap* former,
                                      const model::StringMap* labels) const;
  Change ReclassByNamespaces();
  [[nodiscard]] std::string CheckNamespaces() const;
  // Default constraints of topology spread (default_spread.cc). Null: the profile has none.
  [[nodiscard]] const SpreadDefaults* SpreadDefaultsOf(uint16_t profile) const;
  // Whether a pod of ours, classed by `spec`, has no constraints but those of its profile.
  [[nodiscard]] bool TakesDefaultSpread(const model::Pod& pod, const model::PodSpec& spec) const;
  // Gives the spec the constraints of its profile with that selector, or takes them away.
  void SetDefaultSpread(const model::LabelSelector& selector, const model::StringMap& labels,
                        model::PodSpec& spec) const;
  // Those that the default constraints of the spec read, if it has any.
  static void AddLabelsForDefaults(const model::StringMap& labels, model::PodSpec& spec);
  void FileForDefaults(const PodRecord& record, const model::Pod& pod);
  Change ReclassDefaults(const std::vector<PodId>& pods);
  [[nodiscard]] std::string CheckDefaultSpread() const;
  void ChangeClass(PodRecord& record, const model::PodSpec& spec);
  // Claims and devices (device_claims.cc).
  struct PodClaims {
    std::vector<std::string> keys;  // "ns/name"; first those that the spec names
    size_t named = 0;
    std::string awaited;   // of the first template that has not become a claim yet; empty: none
    std::string extended;  // the last of the keys, if it is its extended claim; else empty
    std::string told;      // by the pod's status: the name of its extended claim, or empty
    friend bool operator==(const PodClaims&, const PodClaims&) = default;
  };
  // What a claim asks for.
  using AskClaim =
      absl::FunctionRef<absl::StatusOr<std::vector<RequestDemand>>(const model::ResourceClaim&)>;
  static bool SameWithoutClaims(const model::PodSpec& classed, const model::PodSpec& spec);
  // What the node offers: its object's amounts, and its devices for each demand.
  void ReadAllocatable(NodeInfo& node);
  void RefreshDevices(NodeId id);
  void RefreshDevicesOf(const std::vector<std::string>& nodes);  // names
  void RefreshAllDevices();
  // True if the pod has claims.
  bool ReadClaims(const PodRecord& record, const model::Pod& pod);
  void SetClaims(PodId pod, PodClaims claims);
  void ForgetClaims(PodId pod);
  // Extended claims (extended_claims.cc): what the devices of classes give of the requests, by
  // name of the resource.
  [[nodiscard]] std::vector<BackedResource> BackedResources(
      const model::ResourceList& requests) const;
  // "" if it has none. `told`: by its status. `bound`: the API server shows it on a node.
  [[nodiscard]] std::string ExtendedClaimOf(const PodRecord& record,
                                            const model::ResourceList& requests,
                                            absl::string_view told, bool bound) const;
  [[nodiscard]] model::ResourceClaim ImpliedClaim(const PodRecord& record,
                                                  const model::ResourceList& requests) const;
  void ImplyExtendedClaim(const PodRecord& record, const PodClaims& claims,
                          const model::ResourceList& requests);
  static bool MayImply(const PodRecord& record);
  // Another class gives a resource, or none does. O(pods).
  void RenewExtendedClaims();
  void ResolveExtended(const PodRecord& record, const std::string& key, AskClaim ask,
                       ClaimFault& fault, model::PodSpec& spec) const;
  // What the node's devices give of extended resources that it has no device plugin for.
  [[nodiscard]] std::vector<std::pair<model::ResourceIndex, int64_t>> BackedAmounts(
      const NodeInfo& node) const;
  void ReadBackedAllocatable(NodeInfo& node) const;
  [[nodiscard]] std::string CheckBackedAllocatable(const NodeInfo& node) const;
  // Decides again which pod carries the claim, and the classes of those that name it.
  void RefreshClaim(const std::string& key);
  void RefreshPodClaims(PodId id);
  // Adds to the spec what the pod's claims make of its class.
  void ResolveClaims(const PodRecord& record, AskClaim ask, model::PodSpec& spec) const;
  [[nodiscard]] std::string QueueFault(const PodRecord& record, const std::string& key,
                                       const model::ResourceClaim& claim) const;
  [[nodiscard]] bool HasPlaceIn(const ClaimRow& row, const PodRecord& record) const;
  void RefreshClaimsOf(PodId id);
  void RefreshAllClaims();
  bool ForgetUnusedDemands();
  // Something with claims went: pods that were refused for too many demands are looked at again.
  void RetryRefusedClaims();
  void TakeDevices(PodId id);
  void ReleaseDevices(PodId id);
  [[nodiscard]] HeldDevices DevicesHeldBy(PodId id) const;
  void RestoreDevices(PodId id, const HeldDevices& held);
  // The claim took or gave back devices of the node.
  void TellClaim(ClaimId claim, absl::string_view node);
  // Volumes (pod_volumes.cc).
  struct PodVolumes {
    std::vector<VolumeClaimId> claims;
    std::vector<model::VolumeClaimRef> names;  // of the claims, as the pod has them
    bool behind = false;  // its class is that of its decision, and something has changed since
  };
  // True if the pod names claims.
  bool ReadVolumes(const PodRecord& record, const model::Pod& pod);
  void ForgetVolumes(PodId pod);
  // What the pod's volumes ask of its node.
  [[nodiscard]] model::VolumeNeeds NeedsOf(const PodRecord& record) const;
  void AddFault(const PodRecord& record, const PodVolumes& volumes,
                model::VolumeNeeds& needs) const;
  // True if the class of a pod is another one now.
  bool RefreshVolumesOf(PodId pod);
  bool RefreshUsers(VolumeClaimId claim);
  Change TakeEffect(const Volumes::Effect& effect);
  // The pod got a node; it has none any more.
  void DecideVolumes(PodId pod);
  void ReleaseVolumes(PodId pod);
  [[nodiscard]] VolumeDecisions VolumeDecisionsOf(PodId pod) const;
  void RestoreVolumes(PodId pod, const VolumeDecisions& decisions);
  void Decide(VolumeClaimId claim, VolumeDecision decision);
  // The nodes that the volume can be used on: others may be given it now, or not any more.
  void TouchNodesOf(const std::string& volume);
  [[nodiscard]] std::string CheckVolumes() const;
  void TellBudget(BudgetId id, bool gone);
  // Parts of CheckConsistency (consistency.cc).
  [[nodiscard]] std::string CheckDevices() const;
  [[nodiscard]] std::string CheckNode(const NodeInfo& node) const;
  [[nodiscard]] std::string CheckPod(const PodRecord& pod) const;
  // `succeeded`: the marks of its pods that succeeded.
  [[nodiscard]] std::string CheckWorkload(const Workload& workload, uint32_t succeeded) const;
  void SumGpuShares(const PodRecord& pod, const NodeInfo& node,
                    std::map<std::string, GpuGroup>& groups) const;
  [[nodiscard]] model::Resources CountedForQueues(const NodeInfo& node) const;
  // Parts of UpsertPod.
  // Index into scheduler_names; their number if the pod is not ours.
  [[nodiscard]] size_t SchedulerOf(const model::Pod& pod) const;
  // It counts in by_status of its group and is nowhere else: not among the group's pods either, of
  // which there may be as many again for every completion of a Job.
  void MarkSucceeded(const model::Pod& pod);
  // The spec that the pod is classed by: its own, or `changed`, which is filled if they differ.
  // `known`: its row so far, or null.
  const model::PodSpec& SpecOfClass(const model::Pod& pod, bool ours, const PodRecord* known,
                                    std::optional<model::PodSpec>& changed) const;
  PodRecord& AddPod(const model::Pod& pod, bool ours, const model::PodSpec& spec);
  // What its metadata says about the pod alone.
  void ReadMeta(PodRecord& record, const model::Pod& pod);
  Change PlaceFromApi(PodRecord& record, const model::Pod& pod);
  // What the binding wrote, of a pod that comes to its node.
  void ReadStart(PodRecord& record, const model::Pod& pod);
  void ReadStartedUnder(PodRecord& record, const model::Pod& pod);
  // Null: the queue of its workload.
  void SetStartedUnder(PodRecord& record, Shared<std::string> queue);
  // PodRecord::started_as of a pod of ours, and what follows from it. O(1); O(pods of the workload)
  // if it was the oldest that is known.
  void SetStartedAs(PodRecord& record, model::Preemptibility started_as);
  // The pod has got a node: without the object of its group it stays as preemptible as it is now.
  void NoteStart(PodId pod);
  // It has a node no more.
  void ForgetStart(PodId pod);
  // The object of the group is about to go: what runs stays as preemptible as it is.
  void KeepPreemptibility(Workload& workload);
  // Workload::oldest_start: it may be `record`; or it is looked for among all. O(1); O(pods).
  void CompareStart(Workload& workload, const PodRecord& record) const;
  [[nodiscard]] PodId FindOldestStart(const Workload& workload) const;
  // Is what is known of the pod's start older than what is known of that one's, if there is any?
  [[nodiscard]] bool IsOlderStart(const PodRecord& record, PodId than) const;
  // What holds while the object of the group does not exist. kByPriority: as the pods say.
  [[nodiscard]] model::Preemptibility KeptBy(const Workload& workload) const;
  void ErasePod(PodId id);
  void ReadTaskPriority(PodRecord& record, const model::Pod& pod);

  // Rows that exist inside a Transaction alone (virtual_rows.cc), to be dropped in reverse order.
  NodeId AddVirtualNode(const model::Node& object);
  void DropVirtualNode(NodeId id);
  PodClassId AddVirtualClass(const model::PodSpec& spec);
  PodId AddVirtualPod(PodClassId pod_class);
  void DropVirtualPod(PodId id);
  static bool SoftlyTainted(const model::Node& node);

  PodId NewPod();
  // A row with the names of a pod, under which it is found.
  PodRecord& NewNamedPod(const model::ObjectMeta& meta);
  NodeId NewNodeRow();
  NodeId NewNode(absl::string_view name, NodeKind kind);
  WorkloadId NewWorkload();
  NodeId NodeForPod(absl::string_view name);
  void DropNodeIfUnused(NodeId id);
  void ReplaceNodeObject(NodeInfo& node, model::Node object);
  // The node no longer exists: drops its row, or parks what pods are on it still.
  void EmptyNode(NodeId id);
  void Tell(const StateChange& change) {
    ++version_;
    for (StateSubscriber* subscriber : subscribers_[static_cast<size_t>(change.kind)]) {
      subscriber->OnChange(change);
    }
  }
  // What the pod counts against its queue is about to change, and has changed.
  void TellReleased(const PodRecord& pod);
  void TellCharged(const PodRecord& pod);
  void TouchNode(NodeId id, bool object = false);
  void TouchWorkload(WorkloadId id);
  // Brings total_for_queues_ up to date with the node as it is now.
  void CountForQueues(NodeInfo& node);
  [[nodiscard]] model::Resources ShareOfQueues(const NodeInfo& node) const;
  [[nodiscard]] static bool CountsForQueues(const NodeInfo& node);
  // Frees resource names that no class and no node has.
  void ForgetUnusedNames();
  PodClassId InternClass(const model::PodSpec& spec);
  void ReleaseClass(PodClassId id);
  model::StringMap InternLabels(const model::StringMap& labels);
  void ReleaseLabels(const model::StringMap& labels);
  bool TakeLabels(PodRecord& record, const model::StringMap& labels);
  const Shared<std::string>& InternQueue(const std::string& queue);
  void AttachToWorkload(PodRecord& pod, const model::Pod& object);
  void DetachFromWorkload(PodRecord& pod);
  void InsertInTaskOrder(Workload& workload, PodId pod);
  // Builds its sets from the PodGroup as it is now, and puts every pod where it belongs.
  void RefreshSets(Workload& workload);
  // Puts a pod where its label says; true if that is another set than before.
  bool AssignSet(PodRecord& pod);
  // The row of a PodGroup, which is new.
  WorkloadId NewGroup(absl::string_view ns, absl::string_view name);
  // What a PodGroup says of its past, and what was said instead (group_past.cc); true if something
  // changed. `old` is what it was before; null if it was not there.
  struct FormerGroup {
    std::string uid;
    Shared<model::PodGroupSpec> spec;
    GroupStatus status;
  };
  bool ReadPast(Workload& workload, const FormerGroup* old);
  static bool ReadStaleSince(Workload& workload);
  static bool ReadLastEviction(Workload& workload);
  static bool ReadFailedAttempt(Workload& workload, const FormerGroup* old);
  [[nodiscard]] absl::Time TurnOf(const Workload& workload) const;  // as JobOrder says
  [[nodiscard]] WorkloadTerms TermsOfFirstPod(const Workload& workload) const;
  [[nodiscard]] WorkloadTerms TermsOf(const Workload& workload) const;
  // Re-reads what the objects say about it; true if something changed.
  bool RefreshWorkload(Workload& workload);
  bool RefreshSortKey(Workload& workload) const;
  // The same, and tells all that depends on it; also if `changed` already.
  void RenewWorkload(WorkloadId id, bool changed = false);
  void DropWorkloadIfUnused(WorkloadId id);
  // After a change of the PriorityClasses: which one is the default, and the workloads' priorities.
  void RenewPriorities();
  [[nodiscard]] PriorityTerms ReadPriority(const WorkloadTerms& terms) const;
  [[nodiscard]] int32_t KaiPriority(const WorkloadTerms& terms) const;
  [[nodiscard]] PriorityRules RulesOf(const PodRecord& pod) const;
  void AssignNameRank(NodeId id);

  std::function<int64_t(const Workload&)> queue_sort_;
  StateOptions options_;
  std::array<std::vector<StateSubscriber*>, StateChange::kKinds> subscribers_;  // by kind
  model::ResourceNames names_;
  std::deque<PodRecord> pods_;
  std::deque<NodeInfo> nodes_;
  std::deque<Workload> workloads_;
  std::deque<PodClass> classes_;
  std::vector<uint32_t> free_pods_, free_nodes_, free_workloads_, free_classes_, free_topologies_,
      free_priority_classes_;
  size_t live_pods_ = 0, live_workloads_ = 0;
  uint64_t virtual_nodes_ = 0, virtual_pods_ = 0;  // that there are now
  RowsByName<PodRecord> pod_index_{pods_};
  std::map<std::string, NodeId, std::less<>> nodes_by_name_;
  RowsByName<Workload> group_index_{workloads_};  // those of PodGroups
  SharedPool<model::PodGroupSpec> group_specs_;
  absl::flat_hash_map<model::PodSpec, PodClassId> class_index_;
  absl::flat_hash_set<model::StringMap> labels_index_;  // equal labels are one map
  model::TextPool texts_;                               // of labels
  std::deque<model::PriorityClass> priority_classes_;
  absl::flat_hash_map<std::string, PriorityClassId> priority_class_index_;
  PriorityClassId global_default_class_ = kNoId;  // of several the lowest
  std::deque<model::Topology> topologies_;
  absl::flat_hash_map<std::string, TopologyId> topology_index_;
  // What decides a single pod's own queue, priority and preemptibility, by pod; groups read their
  // PodGroup first and the first pod's for what it leaves open.
  struct PodHints {
    std::string queue, priority_class_label, priority_class_name, owner_kind;
    std::string staleness_grace, preemption_delay;  // annotations, as written
    model::Preemptibility preemptibility = model::Preemptibility::kByPriority;
    std::optional<int32_t> priority;
    bool never_preempts = false;
    friend bool operator==(const PodHints&, const PodHints&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const PodHints& p) {
      h = model::HashOptional(std::move(h), p.priority);
      return H::combine(std::move(h), p.queue, p.priority_class_label, p.priority_class_name,
                        p.owner_kind, p.staleness_grace, p.preemption_delay, p.preemptibility,
                        p.never_preempts);
    }
  };
  SharedPool<PodHints> hint_pool_;
  std::vector<Shared<PodHints>> hints_;  // by PodId
  DisruptionBudgets budgets_{[this](BudgetId id, bool gone) { TellBudget(id, gone); }};
  GraceEnds grace_ends_;  // of pods that are kReleasing, as the API server has them
  DeviceAllocator devices_{
      [this](ClaimId claim, absl::string_view node) { TellClaim(claim, node); }};
  bool claims_readable_ = true;
  uint64_t demands_on_nodes_ = 0;  // devices_.demand_version() that nodes count devices for
  bool demands_refused_ = false;   // some pod waits because there are too many demands
  bool claims_gone_ = false;       // since ForgetUnusedDemands() looked last
  absl::flat_hash_map<PodId, PodClaims> pod_claims_;  // of pods that have any
  Volumes volumes_;
  absl::flat_hash_map<PodId, PodVolumes> pod_volumes_;  // of pods that name claims
  std::map<std::string, model::NodeResourceTopology, std::less<>> node_topologies_;  // by node
  std::map<std::string, model::NodeResourceTopology> topologies_of_types_;  // by instance type
  std::map<size_t, size_t> machines_by_zones_;      // number of zones -> topologies with so many
  absl::flat_hash_map<PodId, PodZones> pod_zones_;  // of pods that have any, or an annotation
  model::ResourceSum total_for_queues_;
  size_t softly_tainted_nodes_ = 0;
  uint64_t last_class_serial_ = 0;
  size_t classes_gone_ = 0;  // since ForgetUnusedNames() looked last
  SharedPool<std::string> queue_names_;
  Shared<std::string> queue_name_last_;                             // of them, the last one
  absl::flat_hash_map<std::string, std::string> recorded_parents_;  // RecordedParentOf()
  bool deciding_ = false;
  std::map<int64_t, size_t> gpu_memories_;  // MiB -> nodes that have such GPUs
  size_t memory_share_classes_ = 0;
  std::set<std::pair<std::string, std::string>> closed_gpus_;  // node, group
  // Affinity terms of all classes; those that came since pods were last looked at; the label keys
  // that they read, sorted.
  SelectingTerms terms_;
  SelectingTerms bonds_;  // those of them that are bonds, and hard spread
  std::vector<std::pair<std::string, model::PodAffinityTerm>> new_terms_;
  bool new_keys_ = false;
  std::vector<std::string> selected_keys_;
  DefaultSelectors default_selectors_;                  // of pods that take default constraints
  std::map<std::string, model::StringMap> namespaces_;  // the labels of each
  bool namespaces_readable_ = false;
  size_t classes_reading_namespaces_ = 0;
  // What selectors select; forgotten with every change of a namespace.
  mutable absl::flat_hash_map<model::LabelSelector, model::NamespaceNames> selected_namespaces_;
  size_t classes_with_terms_ = 0;  // classes with pod affinity, anti-affinity or spread constraints
  uint64_t version_ = 0;
};

}  // namespace fairlead::state
