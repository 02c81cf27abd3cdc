// The binding pipeline: from the decision that a pod goes to a node until the watch shows it there.
// The desired state is the pod's row (kBinding and its node); a row here has the attempts at its
// binding, from the decision until an OK, a refusal or the end of the pod.
//
//   decided ──Reserve──▶ Permit ──▶ sent ──OK──▶ the watch shows it
//               │           │         ├─refused──▶ the pod waits again, after a back-off
//               │           │         ├─put off──▶ sent again, or decided again
//               └─failed────┘         └─unknown──▶ sent again, after a back-off, for ever
//
// Reserve: each plugin, in order, reserves its own resources (binding_plugin.h).
// Permit holds a binding until
// - everything that is placed in one step has been reserved: of a gang all bindings go out or none.
//   A failure unreserves the whole step.
// - the pods of its gang with a refused binding have been bound (GangRefusals): a gang that cannot
//   be completed is not begun.
// - bindings of its gang in doubt have been decided, unless the gang has its minimum without them.
// - a pod without a pod group that may still get one has waited for it (GroupSettle).
// Before the held bindings of a step go out, their nodes are looked at: if one is gone, or its
// object has changed since the decision, the whole step is decided again.
// Bind: the capacity stays assumed until the answer is a refusal (base/write_attempts.h). A binding
// of unknown outcome is checked before it is repeated: a pod is not bound to a node that is gone.
// A binding that was put off (Aborted, Cancelled: not done, and not judged) is repeated too: after
// a back-off, or at once if it was never sent (Cancelled). It is decided again instead if its node
// is not as it was when it was decided, or if its gang does not have its minimum any more. After
// some Aborted in a row it counts as refused.
// Doubt ends as the rule says, as long as the watch of pods is not stale. But a conflict (409) is
// never believed: it says that the pod is bound.
//
// Ownership: borrows state and plugins. Thread-safety: the owner's thread. Determinism: ordered
// maps; time comes in as an argument. Complexity: O(1) per binding, O(log) if it is held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/write_attempts.h"
#include "core/reconcile/binding_plugin.h"
#include "core/reconcile/due_times.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// When to bind a pod that may still get a PodGroup. A pod-grouper (KAI's, or an operator) makes the
// PodGroup and annotates the pod after the pod was created; binding the pod before that breaks its
// gang. So a pod without a group, but with an owner that a pod-grouper handles, is bound `wait`
// after its creation at the earliest. Such an owner is a controller of any kind but ReplicaSet,
// DaemonSet and Node; a ReplicaSet counts if the pod is of a Knative Revision. A pod-grouper is
// assumed if a PodGroup has been seen before the decision, or if the pod's scheduler name is KAI's.
struct GroupSettle {
  absl::Duration wait = absl::Seconds(1);  // 0: a pod without a group is never held
  bool always = false;                     // also without any sign of a pod-grouper
};

class BindingPipeline {
 public:
  // How long a binding has taken, in times of steps: since the decision, and since it was sent for
  // the first time; zero if it was not.
  struct Taken {
    absl::Duration since_decided, since_sent;
  };
  // The decision loop's side of the pipeline.
  class Host {
   public:
    virtual ~Host() = default;
    // Sends the action and returns its id.
    virtual uint64_t Send(model::Action action) = 0;
    virtual void SendBinding(state::PodId pod, model::BindPod&& bind, uint64_t& id) = 0;
    // The pod waits again (the state has that already). `reason` is empty if the pod itself has no
    // fault. `sent`: the API server refused the binding.
    virtual void BindingFailed(state::PodId pod, const std::string& reason, bool sent,
                               const Taken& taken) = 0;
    // The outcome of this many attempts in a row is unknown.
    virtual void BindingInDoubt(state::PodId pod, const std::string& reason, int64_t attempts) = 0;
    // A plugin has not reserved for its step kSlow after the decision. Once per binding and step.
    virtual void BindingIsSlow(state::PodId pod) = 0;
    // Once per binding: the API server accepted it, or the watch shows it.
    virtual void BindingDone(state::PodId pod, const Taken& taken) = 0;
    // ---- for metrics alone
    // All that the pod needs besides its node is there, so long after the decision.
    virtual void BindingPrepared(state::PodId pod, absl::Duration took) = 0;
    // A pod for which everything was there waited for the others of its step, or for its turn.
    // `granted`: until its binding was sent; else until the step was taken back.
    virtual void PermitWaited(bool granted, absl::Duration waited) = 0;
    virtual void PluginRan(const BindingPlugin::Ran& ran) = 0;
    // False if the pods of the state may be out of date.
    [[nodiscard]] virtual bool PodsAreFresh() const = 0;
    // True for pods with a refused binding, which go first in their workload.
    [[nodiscard]] virtual bool GoesFirst(const state::PodRecord& pod) const = 0;
  };

  static constexpr absl::Duration kSlow = absl::Milliseconds(500);

  BindingPipeline(state::ClusterState& state, Backoff backoff, GroupSettle settle, Host& host)
      : state_(state), rules_{.backoff = backoff}, settle_(settle), host_(host) {}
  // Plugins reserve in the order of registration. They outlive the pipeline.
  void Register(BindingPlugin* plugin) { plugins_.push_back(plugin); }
  // It says which of them the profiles of pods enable. It outlives the pipeline.
  void Use(const framework::Framework& framework) { framework_ = &framework; }

  // ---- decisions
  void Add(const std::vector<engine::Binding>& bindings, absl::Time now);

  // ---- events from the watch, after the state has applied them
  // `id`: its row; kNoId: the state has none.
  void PodChanged(state::PodId id, const model::Pod& pod);
  void PodGroupSeen() { group_seen_ = true; }
  // No group will come for it.
  void IsLone(state::PodId pod) { may_be_grouped_.erase(pod); }
  // Call it before the state removes the pod.
  void PodGoing(state::PodId pod);

  // Whether what was decided about the node of an open binding still holds, and there is room for
  // it.
  [[nodiscard]] bool NodeHolds(uint64_t action_id) const;
  // Takes back a binding that another scheduler makes, and perhaps has made: the pod is decided
  // anew, and no refusal counts.
  void Withdraw(uint64_t action_id);

  // ---- answers. False: the id belongs to no binding.
  bool Answered(uint64_t action_id, const absl::Status& status, absl::Time now);

  // Repeats due bindings, and releases held ones.
  void Step(absl::Time now);
  [[nodiscard]] absl::Time wake_at() const;
  // True if a first attempt to bind it is in flight, or was put off.
  [[nodiscard]] bool AwaitsAnswer(state::PodId pod) const;
  // True if its binding has been sent, and neither refused nor seen.
  [[nodiscard]] bool IsSent(state::PodId pod) const;
  // True if some bindings are in Reserve or Permit.
  [[nodiscard]] bool Holding() const { return !steps_.empty(); }
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] size_t retries() const { return repeats_.size(); }
  // Bindings in Reserve or Permit. O(steps).
  [[nodiscard]] size_t held() const;

 private:
  struct Row {
    uint64_t action_id = 0;  // of the last attempt
    uint64_t step = 0;       // in steps_; 0: none
    WriteAttempts attempts;
    state::NodeId node = state::kNoId;
    uint64_t node_version = 0;  // NodeInfo::object_version at the decision
    bool held = false;          // in Reserve or Permit
    bool repeat = false;        // in repeats_
    bool done = false;          // the host was told
    // In microseconds since 1970, for metrics: the decision; the question to the plugin that has
    // the binding; when all plugins were done, and when it was sent first. 0: not yet.
    int64_t decided_us = 0, asked_us = 0, ready_us = 0, sent_us = 0;
  };
  // Pods that are placed together and held.
  struct PlacedStep {
    std::string workload;  // WorkloadOf() its members
    std::vector<state::PodId> members;
    size_t reserving = 0;               // members with unfinished plugins
    std::vector<model::BindPod> ready;  // reserved, in the order of arrival
    std::set<state::PodId> probes;      // sent first, and not known to be bound
    std::set<state::PodId> doubts;      // pods of other steps whose outcome this one waits for
    absl::Time not_before = absl::InfinitePast();
  };

  // A new row in the place of the pod's former one. Invalidates references to rows.
  Row& NewRow(state::PodId pod);
  // Null: no binding of the pod is in progress.
  [[nodiscard]] Row* Find(state::PodId pod);
  [[nodiscard]] const Row* Find(state::PodId pod) const;
  void Drop(state::PodId pod);
  [[nodiscard]] bool IsBinding(state::PodId pod) const;
  [[nodiscard]] model::BindPod MakeBinding(state::PodId pod) const;
  [[nodiscard]] bool NeedsPlugin(const state::PodRecord& pod) const;
  [[nodiscard]] bool Needs(const BindingPlugin& plugin, const state::PodRecord& pod) const;
  [[nodiscard]] absl::Time SettlesAt(const state::PodRecord& pod, absl::Time now) const;
  void AddStep(const engine::Binding* begin, const engine::Binding* end, absl::Time now);
  // Runs the plugins from `first` on, then Permit.
  void Reserve(uint64_t id, state::PodId pod, model::BindPod bind, size_t first, absl::Time now);
  void TryPermit(uint64_t id, absl::Time now);
  // Makes the whole step wait again. `culprit` failed for `reason`.
  void Unreserve(uint64_t id, state::PodId culprit, const std::string& reason, bool sent);
  void Fail(state::PodId pod, const std::string& reason, bool sent);
  // ---- for metrics
  void SetNow(absl::Time now);
  [[nodiscard]] Taken TakenBy(const Row& row) const;
  void TellRan(const BindingPlugin& plugin, state::PodId pod, bool ok);
  void TellPermit(const Row& row, bool granted);
  void Send(state::PodId pod, model::BindPod&& bind, absl::Time now);
  void Repeat(state::PodId pod, absl::Time now);
  void RepeatAt(absl::Time at, state::PodId pod, Row& row);
  // True if the node exists, and its object has not changed since the decision.
  [[nodiscard]] bool NodeIsAsDecided(const Row& row) const;
  // Of the nodes of all held pods of the step. O(members).
  [[nodiscard]] bool NodesAreAsDecided(const PlacedStep& step) const;
  // True if nothing that is known forbids another attempt.
  [[nodiscard]] bool MayRepeat(state::PodId pod, const Row& row) const;
  // Tells the host that the binding is done.
  void Done(state::PodId pod, Row& row);
  // The pod does not wait for its binding any more: drops the row, unless its step needs it.
  void Decided(state::PodId pod, Row& row);
  // Names the pod's workload. Its id tells nothing after an event: a pod that gets a group frees
  // the id of the lone pod, and the group may get it.
  [[nodiscard]] std::string WorkloadOf(state::PodId pod) const;
  // Files the pods whose bindings in doubt the gang's step has to wait for.
  void AddDoubts(PlacedStep& step, state::WorkloadId workload);
  [[nodiscard]] bool IsInDoubt(state::PodId pod) const;
  // Permits steps whose doubts have been decided, and ends those that have lost a pod by it.
  void SettleDoubts();
  // A pod for which its step waits is known to be bound.
  void ProbeDone(state::PodId pod);
  void Advance(size_t plugin, absl::Time now);
  void TellSlow(absl::Time now);

  state::ClusterState& state_;
  const WriteAttempts::Rules rules_;
  const GroupSettle settle_;
  Host& host_;
  std::vector<BindingPlugin*> plugins_;
  const framework::Framework* framework_ = nullptr;
  std::vector<uint32_t> places_;  // by PodId -> place in rows_, from 1; 0: none. Ids are reused,
                                  // which the pod's status tells.
  std::vector<Row> rows_;
  std::vector<uint32_t> free_places_;
  absl::flat_hash_map<uint64_t, state::PodId> in_flight_;  // by action id
  DueTimes<state::PodId> repeats_;
  std::set<state::PodId> in_doubt_;  // perhaps decided since
  std::map<uint64_t, PlacedStep> steps_;
  std::set<uint64_t> permit_again_;  // steps to look at
  DueTimes<uint64_t> slow_;          // steps with plugins, when they are slow
  uint64_t next_step_ = 1;
  absl::Time now_ = absl::InfinitePast();  // as told last
  int64_t now_us_ = 0;                     // the same
  // Bindings to which plugins added something, for repetitions.
  absl::flat_hash_map<state::PodId, model::BindPod> special_;
  // Unbound pods without a group, but with an owner that a pod-grouper handles -> whether the pod
  // itself says that there is a pod-grouper.
  absl::flat_hash_map<state::PodId, bool> may_be_grouped_;
  bool group_seen_ = false;
};

}  // namespace fairlead::core
