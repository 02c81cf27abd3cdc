// PodGroups of scheduling.k8s.io (model::NativePodGroup): what the state sees of them, and their
// condition PodGroupScheduled.
//
// A pod names a group, and not whose it is. So there is one group of a name: KAI's PodGroup if
// there is one, else the native one, which is kept here meanwhile.
//
// A topology constraint names a node label and no Topology: the Topology of that one level is in
// the state as long as a group needs it.
//
// Its verdict is written as that of KAI's groups is, though into an annotation
// (reconcile/status_updater.h). The condition is True once as many pods are bound as the group
// needs, and stays so, as upstream has it; before that it is False while a verdict says why the
// group waits. It is written when the verdict's code changes. A write that was refused or whose
// outcome is unknown is repeated after a pause; it ends if the group is gone or the server calls it
// invalid.
//
// Ownership: borrows the state and the verdicts. Thread-safety: the owner's thread. Complexity:
// O(log groups) an event; a Step O(native groups that are not scheduled yet). Determinism: in the
// order of the names.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/condition_write.h"
#include "core/reconcile/status_updater.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class NativeGroups {
 public:
  NativeGroups(state::ClusterState& state, const StatusUpdater& verdicts, Backoff backoff)
      : state_(state), verdicts_(verdicts), rules_{.backoff = backoff} {}

  state::Change Upsert(const model::NativePodGroup& group);
  // An empty uid: whichever is there.
  state::Change Remove(absl::string_view ns, absl::string_view name, absl::string_view uid);
  // KAI's PodGroup of the name has gone.
  state::Change RemoveKais(absl::string_view ns, absl::string_view name, absl::string_view uid);

  // `key`: "ns/name" of the group.
  void Answered(absl::string_view key, absl::string_view uid, const absl::Status& status,
                absl::Time now);
  // Appends the conditions that are due.
  void Step(absl::Time now, std::vector<model::Action>& actions);
  // When the next repetition is due.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  [[nodiscard]] size_t size() const { return rows_.size(); }

 private:
  struct Condition {
    std::string status;  // empty: none, or nothing to be said
    std::string code;    // of the verdict, where it is False
    std::string message;
    [[nodiscard]] bool SaysTheSame(const Condition& other) const {
      return status == other.status && code == other.code;
    }
  };
  struct Row {
    model::NativePodGroup group;
    ConditionWrite<Condition> condition;
  };
  [[nodiscard]] static Condition ShownBy(const model::NativePodGroup& group);
  // The workload of the group, if the state sees this one.
  [[nodiscard]] const state::Workload* WorkloadOf(const Row& row) const;
  // Of nothing that is to be said, its status is empty.
  [[nodiscard]] Condition Desired(const state::Workload& workload) const;
  // The topology of the constraint is needed by one group more, or no longer by one.
  state::Change Hold(const model::TopologyConstraint& constraint);
  state::Change Release(const model::TopologyConstraint& constraint);

  state::ClusterState& state_;
  const StatusUpdater& verdicts_;
  const WriteAttempts::Rules rules_;
  std::map<std::string, Row, std::less<>> rows_;  // by "ns/name"
  std::set<std::string> open_;                    // of them, those that are not scheduled yet
  std::map<std::string, size_t> topologies_;      // by name: the groups that need it
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
