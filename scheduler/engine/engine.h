// The scheduling cycle: which pod goes where, which pods are evicted, and why the rest waits.
//
// One cycle, on the current ClusterState (KAI's actions in KAI's order, facts 3.6-3.13):
//   1. allocate      in the order of queues and workloads; a gang is placed whole or not at all,
//                    its elastic extras one at a time; what only fits room that is being released,
//                    or on a node on order, is promised that room
//   2. consolidate   moves running pods together, so that a waiting workload fits; every pod that
//                    is moved has a new place
//   3. reclaim       for a queue below its fair share, from queues above theirs
//   4. preempt       inside a queue, from lower priorities
//   5. stale gangs   what is left of a gang that lost its minimum goes after a grace period
//   6. demand        what is still left and no policy holds: the hook may buy for it
// Decisions of 1 stay in the state as assumed (kBinding); victims as kReleasing; promises and
// demand are taken back at the end of the cycle, so that the next one orders afresh.
//
// Why something waits is found as a by-product, and worded elsewhere (scheduler/verdict).
//
// Ownership: borrows the state and the tree. Thread-safety: the state's owner thread.
// Determinism: same state, same result; every search is bounded in work units, and what a bound
// left undone is said in the verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/derived_names.h"
#include "queues/fair_share.h"
#include "queues/min_runtime.h"
#include "queues/tree.h"
#include "queues/usage.h"
#include "scheduler/engine/history.h"
#include "scheduler/engine/over_quota.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/offered_node.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/verdict/domains.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::engine {

// Room that is kept for gangs that have waited long (reservation.h).
struct ReservationOptions {
  bool on = false;
  absl::Duration reserve_after = absl::Minutes(5);
  // Devices of the scarcest resource; a gang of several pods is big in any case.
  int64_t reserve_min_devices = 8;
  int64_t max_reservations = 8;
};

struct EngineOptions {
  bool allocate = true;
  bool consolidation = true;
  bool reclaim = true;
  bool preempt = true;
  bool stale_gangs = true;
  bool hook_on = true;
  // Parts of devices: of a free device first instead of the fullest shared one. Spreading switches
  // consolidation off, as in KAI.
  bool spread_parts = false;
  // Workloads that one consolidation may move; kUnlimited: no cap.
  int64_t max_consolidation_workloads = 16;
  // Pods are moved by consolidation once they have run for so long, or for longer if their workload
  // has been moved before (move_history.h). Zero: at any time, as in KAI.
  absl::Duration consolidation_min_runtime = absl::Minutes(1);
  // Victims of a reclaim that find a new place are moved and do not count as taken.
  bool consolidating_reclaim = true;
  absl::Duration staleness_grace = absl::Seconds(60);         // of groups that do not say
  absl::Duration preempt_min_runtime = absl::ZeroDuration();  // of queues that do not say
  absl::Duration reclaim_min_runtime = absl::ZeroDuration();
  queues::ReclaimResolveMethod reclaim_resolve =
      queues::ReclaimResolveMethod::kLowestCommonAncestor;
  // A pod that still terminates this long after its grace period is stuck: nothing waits for its
  // capacity. Infinite: none ever is. (KAI: --stuck-in-releasing-threshold.)
  absl::Duration stuck_in_releasing_threshold = absl::Minutes(2);
  // Room is kept for gangs that have waited long; what says how long it runs may use it meanwhile.
  ReservationOptions reservations;
  int64_t saturation_multiplier_micro = queues::kMicro;
  // A reclaim may bring a queue above its fair share by less than the step (queues/reclaim.h).
  bool round_to_gang = false;
  // Workloads of one leaf queue that an action considers in a cycle; kUnlimited: all.
  int64_t allocate_depth = model::kUnlimited;
  int64_t consolidation_depth = model::kUnlimited;
  int64_t reclaim_depth = model::kUnlimited;
  int64_t preempt_depth = model::kUnlimited;
  // Victims tried in one search for one workload before it gives up and says so.
  int64_t max_victims_per_search = 8192;
  // Filter evaluations after which a cycle gives no more turns to what waits: the next cycle
  // follows at once, and comes further (walk_budget.h).
  int64_t max_walk_work = 20'000'000;
  // Filter evaluations that all searches of one cycle may spend. What was not searched for because
  // they were spent comes first in the next cycle.
  int64_t max_search_work = 20'000'000;
  // Weight of history in fair share, in millionths; 0: none.
  int64_t k_micro = queues::kMicro;
  // How history is recorded or reported; absent: not at all, and the engine
  // requests no wake-up for it. Has to be valid (queues::UsageWindow::Create).
  std::optional<queues::UsageOptions> usage;
  // Between two attempts of a workload whose binding failed.
  absl::Duration bind_backoff_initial = absl::Seconds(1);
  absl::Duration bind_backoff_max = absl::Seconds(60);
  std::shared_ptr<DerivedNames> derived_names = nullptr;  // of seeds and of hashes of verdicts
};

// The parts of the node that the pod takes, if any, are in its row (state::PartsOf).
struct Binding {
  state::PodId pod;
  state::NodeId node;
  // Pods of equal number were placed together, one after the other: none of them is to be bound
  // without the others.
  uint32_t step = 0;
};

// True if the victims of this action make way for another workload: reclaim and preempt.
[[nodiscard]] bool IsPreemption(absl::string_view action);

struct Eviction {
  state::PodId pod;
  std::string action;  // "consolidation", "reclaim", "preempt", "stalegangeviction"
  state::NodeId moves_to = state::kNoId;  // where it has a place again, if it is only moved
  std::string for_workload;               // "namespace/name"
  std::string message;
  // Victims of equal number were chosen together: each alone would not do. Ascending from 0.
  uint64_t set = 0;
  bool against_budget = false;  // a PodDisruptionBudget has nothing left for it: it may be refused
};

// A workload that still lacks something after the cycle.
struct Waiting {
  state::WorkloadId workload = state::kNoId;
  verdict::Verdict verdict;
  // The pods that wait, in task order; a promise names the node, kNoId for none.
  struct PodPromise {
    state::PodId pod;
    state::NodeId node = state::kNoId;
  };
  std::vector<PodPromise> pods;
  // True: verdict.demand is what the hook may buy for (I1, I2 hold for all such entries together,
  // in this order).
  bool wants_nodes = false;
  // Of an entry that wants nodes: equal numbers are answered alike, because equal pods of one queue
  // have to start together. 0: a kind that no node could ever run.
  uint64_t demand_kind = 0;
  // True: its kind is unservable (Engine::SetUnservable), so the demand is not charged to its
  // queues. Nodes may be provisioned for it only after it was charged.
  bool uncharged = false;
  // The same pods by their topology constraints, if there are any.
  verdict::DomainDemand domains;
  // How many more wait for the very same reason, behind it in its queue: lone pods, or groups of
  // its shape, that differ from it in name and age only. Engine::ExpandEquivalents() gives each its
  // own entry. If wants_nodes, nodes may be bought for each of them.
  int64_t behind = 0;
  uint64_t equivalence_class = 0;  // or a range of one: those behind; set if `behind` is not 0
  // False: its turn did not come in this cycle (queueDepth, max_walk_work).
  bool tried = true;
  // Pods were evicted for it, so it was placed before the workloads of all queues (preemptors.h).
  bool served_first = false;
  // Divided from an entry before it: between both there are only other such parts. Those come in
  // order; entries of its queue behind it may come before it in the order of the queue.
  bool part = false;
};

// A gang began or ceased to lack its minimum; goes into the group's annotation, so that the grace
// period outlives a restart.
struct StaleChange {
  state::WorkloadId workload = state::kNoId;
  std::optional<absl::Time> since;  // none: it is whole again
};

// Workloads that began to wait, or to wait behind another entry, and those that ceased to. A
// workload may be listed several times. One that had an entry of its own, and is behind another one
// now, need not be listed.
struct WaitingChanges {
  bool all = false;  // any workload may have
  std::vector<state::WorkloadId> came, left;
  void Append(const WaitingChanges& more) {
    all = all || more.all;
    came.insert(came.end(), more.came.begin(), more.came.end());
    left.insert(left.end(), more.left.begin(), more.left.end());
  }
};

// Workloads that follow each other in the order of their queues, and for which one entry stands.
struct EntryRun {
  size_t entry = 0;   // index
  int64_t first = 0;  // of the workloads of the entry; 0: the entry's own
  int64_t count = 0;
  state::WorkloadId workload = state::kNoId;  // the first of them
};

struct CycleResult {
  std::vector<Binding> bindings;
  // Decided in this cycle and taken back in it, for a workload that comes first: the pods wait
  // again, and nothing is to be written.
  std::vector<Binding> withdrawn;
  std::vector<Eviction> evictions;
  std::vector<StaleChange> stale;
  std::vector<Waiting> waiting;  // in queue order
  // When a cycle could decide something new although nothing changed; infinite future if never.
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t work = 0;  // filter evaluations
  // Finished searches for victims of reclaim and preempt, whether or not they found any.
  uint64_t victim_searches = 0;
};

// One queue's numbers as the last cycle saw them.
struct QueueNumbers {
  queues::QueueId queue;
  model::Resources allocated, allocated_non_preemptible, requested, fair_share;
  int64_t waiting_workloads = 0;
  int64_t running_pods = 0;  // started in the queue itself; leaf queues have them
};

class FormerEntries;
class Hypothesis;

class Engine {
 public:
  // Subscribes to the state's changes.
  Engine(const EngineOptions& options, state::ClusterState* state, queues::QueueTree* tree,
         std::unique_ptr<framework::Framework> framework);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const framework::Framework& framework() const;

  // `may_evict` false: no pod is evicted in this cycle.
  CycleResult RunCycle(absl::Time now, bool may_evict = true);

  // An entry for each waiting workload, in queue order, with positions counted through.
  // `waiting` is of the last cycle; workloads that are gone since are left out. O(all that waits).
  [[nodiscard]] std::vector<Waiting> ExpandEquivalents(std::vector<Waiting> waiting) const;
  // Those behind an entry of the last cycle, in order.
  void ForEachBehind(const Waiting& waiting,
                     const std::function<void(state::WorkloadId)>& use) const;
  // The same, from the `first`th workload of the entry (0: its own) on, `count` at most.
  void ForEachOf(const Waiting& waiting, int64_t first, int64_t count,
                 const std::function<void(state::WorkloadId)>& use) const;
  // The order in which ExpandEquivalents() would have the entries for which `included` is true.
  [[nodiscard]] std::vector<EntryRun> RunsInOrder(
      const std::vector<Waiting>& waiting,
      const std::function<bool(const Waiting&)>& included) const;
  // Divides an entry of the last cycle: it keeps the first `keep` workloads, and the result stands
  // for the others. `keep`: 1 to Waiting::behind.
  Waiting Divide(Waiting& entry, int64_t keep);
  // Divides the entry so that no part stands for some of these workloads and for others. The parts
  // are in order.
  std::vector<Waiting> SetApart(Waiting entry, const std::vector<state::WorkloadId>& workloads);
  // For the next cycle: which workloads the entries stand for.
  [[nodiscard]] std::shared_ptr<const FormerEntries> Remember(
      const std::vector<Waiting>& waiting) const;
  // For each entry the index of the former one that stood for its workloads; -1 if none did.
  // Divides entries of which that is not true as a whole.
  std::vector<int64_t> MatchFormer(const FormerEntries& former, std::vector<Waiting>& waiting);
  // What began and ceased to wait, or to wait behind an entry, since the last call.
  WaitingChanges TakeChanges();
  // Waiting::equivalence_class of the entry behind which it waits, as of the last cycle; or 0.
  [[nodiscard]] uint64_t EquivalenceClassOf(state::WorkloadId workload) const;

  // A binding failed: the pod waits again, not before its back-off ends.
  void OnBindFailed(state::PodId pod, absl::Time now);
  // The pod is not tried before `until`.
  void HoldPod(state::PodId pod, absl::Time until);
  // An eviction was refused, and the pod taken back (ClusterState::ForgetEviction): it is no
  // victim before `until`, nor before its budgets change if one of them was the reason. If
  // others went for the same workload in vain, none goes for some time (eviction_backoff.h).
  void OnEvictionRefused(state::PodId pod, absl::Time until, bool by_budget, absl::Time now);
  // An extender refused it for pods of that class.
  void OnEvictionRefusedFor(state::PodClassId preemptor, state::PodId pod, absl::Time until);
  // The labels of nodes that may be bought, a sorted list for each kind of node. Without: what is
  // bound to a topology makes no demand.
  void SetOfferedLabels(std::vector<std::vector<std::string>> labels);
  // One of each kind that may be bought. Pods that none of them and no present node could take are
  // not charged to their queues in demand.
  void SetOfferedNodes(std::vector<model::OfferedNode> nodes);
  // The kinds of demand (Waiting::demand_kind) for which no nodes can be provisioned now. They are
  // not charged to their queues, so that they hold no other demand below a limit. Borrowed: each
  // cycle reads the set. Without: none.
  void SetUnservable(const absl::flat_hash_set<uint64_t>* kinds);
  // What leaf queues do for what they hold above their quota (buying.h). Those that are not named
  // evict.
  void SetOverQuota(std::map<std::string, OverQuota> leaf_queues);
  // Which nodes, of those that pods are only promised to, are later than expected. Promises there
  // hold no headroom of a limit back from what can start (actions/allocate.h). Without: none is.
  void SetLateNodes(std::function<bool(const state::NodeInfo&)> is_late);
  // Reads what has changed since the last cycle (workloads, queues) now, not before the next one:
  // for Numbers().
  void OnQueuesChanged();

  [[nodiscard]] std::vector<QueueNumbers> Numbers() const;

  // The record of what queues have used (queues/usage_record.h), as far as there is one.
  // FailedPrecondition where nothing is or was recorded, else what Encode and Decode say; a record
  // that cannot be read leaves the present one as it is.
  [[nodiscard]] absl::StatusOr<std::string> EncodeUsage(size_t max_bytes) const;
  absl::Status RestoreUsage(absl::string_view text);
  // Another one with each sample; 0: nothing is recorded.
  [[nodiscard]] uint64_t usage_version() const;
  // Usage that another program has counted. Returns false and changes nothing if it is not wanted.
  bool TakeUsage(const model::UsageReport& report);
  [[nodiscard]] const HistoryState& history() const;

  // How many pods of the class fit on an empty node like this beside `already`; at most `limit`.
  struct Load {
    std::shared_ptr<const model::PodSpec> spec;
    int64_t count = 0;
  };
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit);

  // The cluster as it could be, with this engine's filters (hypothesis.h). To be dropped before the
  // next event, cycle or call of the engine that changes anything.
  [[nodiscard]] std::unique_ptr<Hypothesis> WhatIf();

  // The nodes to which the pod could be bound if it had none yet, by name, whatever extenders have
  // said about it. O(nodes).
  [[nodiscard]] std::vector<std::string> NodesThatFit(state::PodId pod);

  // Nodes on which room is kept for a gang: they are needed though nothing may run there.
  [[nodiscard]] std::vector<state::NodeId> ReservedNodes() const;

  // Recount of the ledger from the state; the first difference, or empty. For tests and the
  // simulator.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::engine
