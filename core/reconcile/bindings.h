// The binding pipeline: from the decision that a pod goes to a node until the watch shows it there.
// The desired state is the pod's row (kBinding and its node); a row here says how far its binding
// has come.
//
//   decided ──Reserve──▶ Permit ──▶ sent ──OK──▶ the watch shows it
//               │           │         ├─refused──▶ the pod waits again, after a back-off
//               └─failed────┘         └─unknown──▶ sent again, after a back-off, for ever
//
// Reserve: each plugin, in order, reserves what is its own (binding_plugin.h).
// Permit holds a binding until
//   - everything that is placed in the same step has been reserved: of a gang all bindings go out
//   or
//     none does. One that fails unreserves the whole step.
//   - the pods of its gang whose binding was refused before have been bound (GangRefusals): a gang
//     that cannot be completed is not begun.
//   - a pod without a pod group that may still get one has waited for it (GroupSettle).
// Bind: the room stays assumed until the answer is a refusal (outcome.h). A binding of unknown
// outcome is checked again before it is repeated: a pod whose node is gone is not bound to it.
//
// Ownership: borrows state and plugins. Thread-safety: the owner's thread. Determinism: ordered
// maps; time comes in as an argument. Complexity: O(1) a binding, O(log) where it is held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/reconcile/binding_plugin.h"
#include "core/reconcile/outcome.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// A pod-grouper (KAI's, or an operator) makes the PodGroup and annotates the pod after the pod was
// created. A pod that is bound before that breaks its gang, so a pod that has no group yet, but an
// owner that a pod-grouper acts on, is bound `wait` after its creation at the earliest. Such an
// owner is a controller of any kind but ReplicaSet, DaemonSet and Node. A pod-grouper is taken to
// be there if a PodGroup has been seen, or if the pod's scheduler name is KAI's.
struct GroupSettle {
  absl::Duration wait = absl::Seconds(1);  // 0: a pod without a group is never held
  bool always = false;                     // without any sign of a pod-grouper too
};

class BindingPipeline {
 public:
  // What the pipeline asks of the decision loop.
  class Host {
   public:
    virtual ~Host() = default;
    // Sends it and returns its id.
    virtual uint64_t Send(model::Action action) = 0;
    virtual void SendBinding(model::BindPod bind, uint64_t& id) = 0;
    // The pod waits again (the state says so already). `reason` is empty if nothing is wrong with
    // the pod itself. `sent`: the API server refused the binding.
    virtual void BindingFailed(state::PodId pod, const std::string& reason, bool sent) = 0;
    // The outcome of this many attempts in a row is unknown.
    virtual void BindingInDoubt(state::PodId pod, const std::string& reason, int attempts) = 0;
    virtual void BindingDone(state::PodId pod) = 0;
    // Pods of this workload whose binding was refused before and which go first.
    [[nodiscard]] virtual bool GoesFirst(const state::PodRecord& pod) const = 0;
  };

  BindingPipeline(state::ClusterState& state, Backoff backoff, GroupSettle settle, Host& host)
      : state_(state), backoff_(backoff), settle_(settle), host_(host) {}
  // In the order in which they reserve. They outlive the pipeline.
  void Register(BindingPlugin* plugin) { plugins_.push_back(plugin); }

  // ---- what was decided
  void Add(const std::vector<engine::Binding>& bindings, absl::Time now);

  // ---- what the watch shows, after the state has taken it
  void PodChanged(const model::Pod& pod);
  void PodGroupSeen() { group_seen_ = true; }
  // Before the state forgets it.
  void PodGoing(state::PodId pod);

  // ---- answers. False: the id is of no binding.
  bool Answered(uint64_t action_id, const absl::Status& status, absl::Time now);

  // Repeats what is due, and lets go what was held.
  void Step(absl::Time now);
  [[nodiscard]] absl::Time wake_at() const;
  // A first attempt to bind it is on its way.
  [[nodiscard]] bool AwaitsAnswer(state::PodId pod) const;
  // Some bindings are in Reserve or Permit.
  [[nodiscard]] bool Holding() const { return !steps_.empty(); }

 private:
  struct Row {
    uint64_t action_id = 0;  // on its way; 0: none
    uint64_t step = 0;       // in steps_; 0: none
    int32_t unknown = 0;     // answers so far that left the outcome open
    bool held = false;       // in Reserve or Permit
  };
  // Pods that are placed together and held.
  struct PlacedStep {
    state::WorkloadId workload = state::kNoId;
    std::vector<state::PodId> members;
    size_t reserving = 0;               // members whose plugins are not done
    std::vector<model::BindPod> ready;  // reserved, in the order of arrival
    std::set<state::PodId> probes;      // sent first, and not known to be bound
    absl::Time not_before = absl::InfinitePast();
  };

  Row& RowOf(state::PodId pod);
  [[nodiscard]] bool IsBinding(state::PodId pod) const;
  [[nodiscard]] model::BindPod MakeBinding(state::PodId pod) const;
  [[nodiscard]] bool NeedsPlugin(const state::PodRecord& pod) const;
  [[nodiscard]] absl::Time SettlesAt(const state::PodRecord& pod, absl::Time now) const;
  void AddStep(const engine::Binding* begin, const engine::Binding* end, absl::Time now);
  // The plugins from `first` on, then Permit.
  void Reserve(uint64_t id, state::PodId pod, model::BindPod bind, size_t first, absl::Time now);
  void TryPermit(uint64_t id, absl::Time now);
  // The whole step waits again. `culprit` failed for `reason`.
  void Unreserve(uint64_t id, state::PodId culprit, const std::string& reason, bool sent);
  void Fail(state::PodId pod, const std::string& reason, bool sent);
  void Send(state::PodId pod, model::BindPod bind);
  void Repeat(state::PodId pod);
  // A pod that others of its step wait for is known to be bound.
  void ProbeDone(state::PodId pod);
  void Advance(size_t plugin, absl::Time now);

  state::ClusterState& state_;
  const Backoff backoff_;
  const GroupSettle settle_;
  Host& host_;
  std::vector<BindingPlugin*> plugins_;
  std::vector<Row> rows_;  // by PodId; ids are reused, which the pod's status tells
  absl::flat_hash_map<uint64_t, state::PodId> in_flight_;  // by action id
  std::map<absl::Time, std::vector<state::PodId>> repeats_;
  std::map<uint64_t, PlacedStep> steps_;
  std::set<uint64_t> permit_again_;  // steps to look at
  uint64_t next_step_ = 1;
  // Bindings to which plugins added something, for repetitions.
  absl::flat_hash_map<state::PodId, model::BindPod> special_;
  // Unbound pods without a group which may get one.
  absl::flat_hash_set<state::PodId> may_be_grouped_;
  bool group_seen_ = false;
};

}  // namespace fairlead::core
