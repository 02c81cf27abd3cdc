// What keeps a victim from being evicted although the queues' rules would have it: its
// PodDisruptionBudgets, and an eviction that was refused a moment ago.
//
// Thread-safety: the owner's thread. Ownership: borrows the state. A cluster without budgets and
// refusals pays one look at two empty tables a unit.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

struct VictimUnit;

// Evictions that the API server refused, by the pod's uid. Such a pod is no victim
//   - until its back-off ends, and
//   - if it was a budget of which we know: before that budget changes. It is asked again at once if
//     the budget then has something left for it.
// So the eviction of a pod that an unchanged budget protects is requested once, and the verdict of
// the waiting workload does not alternate between two codes.
//
// And those that extenders refused for pods of a class (preemptVerb): such a pod is no victim of
// theirs for a while. What is found for a pod holds for its class, so that a refusal does, too.
class EvictionRefusals {
 public:
  // `until`: end of the back-off. `by_budget`: the server named a budget as the reason.
  void Add(const state::ClusterState& state, const state::PodRecord& pod, absl::Time until,
           bool by_budget);
  void AddFor(state::PodClassId preemptor, const state::PodRecord& pod, absl::Time until);
  // `preemptors`: classes of the pods for which it would go.
  [[nodiscard]] bool Stands(const state::ClusterState& state, const state::PodRecord& pod,
                            absl::Time now,
                            absl::Span<const state::PodClassId> preemptors = {}) const;
  // It is one of extenders.
  [[nodiscard]] bool StandsFor(const state::PodRecord& pod, absl::Time now,
                               absl::Span<const state::PodClassId> preemptors) const;
  // The budgets that said no to it ("ns/a, ns/b"); empty: something else, or not known.
  [[nodiscard]] std::string BudgetsThatRefused(absl::string_view uid) const;
  // When the next one ends without any event; infinite future if none does. O(refusals)
  [[nodiscard]] absl::Time NextEnd(const state::ClusterState& state, absl::Time now) const;
  // Forgets pods that are gone and refusals that have ended. O(refusals)
  void Trim(const state::ClusterState& state, absl::Time now);
  [[nodiscard]] bool empty() const { return refusals_.empty() && by_extenders_.empty(); }

 private:
  struct Refusal {
    state::PodId pod = state::kNoId;
    absl::Time until;
    // Of the budgets that cover the pod, as they were: names, and a digest of ids and versions.
    // 0: no budget that we know of is the reason.
    uint64_t digest = 0;
    std::string budgets;
  };
  [[nodiscard]] static uint64_t DigestOf(const state::ClusterState& state,
                                         const state::BudgetIds& budgets);
  [[nodiscard]] static bool Stands(const state::ClusterState& state, const Refusal& refusal,
                                   absl::Time now);
  absl::flat_hash_map<std::string, Refusal> refusals_;
  // By uid of the pod and class of the preemptor: until when.
  absl::flat_hash_map<std::pair<std::string, state::PodClassId>, absl::Time> by_extenders_;
};

// How many pods of a budget a unit takes.
struct BudgetNeed {
  state::BudgetId budget = 0;
  int64_t pods = 0;
};
struct BudgetNeeds {
  absl::InlinedVector<BudgetNeed, 2> needs;  // by budget id
  int64_t several = 0;                       // pods that more than one budget covers
};
BudgetNeeds NeedsOf(const state::ClusterState& state, const std::vector<state::PodId>& pods);

// What is left of each budget while pods are evicted one after another.
class BudgetSpending {
 public:
  explicit BudgetSpending(const state::ClusterState& state) : state_(state) {}
  // True if one of the pod's budgets has nothing left for it. O(its budgets).
  bool Exceeds(const state::PodRecord& pod);

 private:
  const state::ClusterState& state_;
  std::map<state::BudgetId, int64_t> left_;
};

// The budgets in one search: which units may not be taken at all, and which not together.
// All victims of the search count; what other searches and evictions in flight have spent is
// off DisruptionBudgets::Left() already.
class SearchBudgets {
 public:
  // `against`: budgets protect no pod, except pods that several budgets cover (the API server never
  // lets an eviction of such a pod through).
  SearchBudgets(const state::ClusterState& state, bool against)
      : budgets_(state.budgets()), against_(against) {}

  // Returns false if the unit's budgets rule it out whatever else is taken. A gang's block is ruled
  // out as a whole, and so is what is left of a workload that keeps an extra pod.
  bool Admits(const VictimUnit& unit);
  // Reduces admitted units to those that may be taken together: if a budget has less left than they
  // need, those that free most; then those that were taken first. Returns false if the last unit is
  // not among them: that choice has been tried before.
  [[nodiscard]] bool Choose(std::vector<VictimUnit>& units) const;

  [[nodiscard]] bool any_spared() const { return spared_ > 0; }
  // One clause each, for the verdict.
  void Explain(absl::string_view action, std::vector<std::string>& details) const;

 private:
  const state::DisruptionBudgets& budgets_;
  const bool against_;
  // Workloads that keep a pod, and so must keep their core.
  std::set<state::WorkloadId> keep_core_;
  int64_t spared_ = 0, several_ = 0;  // pods
  std::set<std::string> sparing_;     // names of budgets
};

}  // namespace fairlead::engine
