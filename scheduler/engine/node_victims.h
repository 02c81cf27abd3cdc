// Which pods of one node make room for a waiting pod, by kube-scheduler's rules: the dry run of its
// plugin DefaultPreemption (pkg/scheduler/framework/plugins/defaultpreemption, v1.36).
//
// All pods of lower priority are evicted in a Hypothesis. If the pod then fits, as many of them as
// possible are given back, one after another: first those that budgets protect, then the others,
// among each the more important first (higher priority, then longer running). Those that stand in
// the way are the victims.
//
// Where this differs from kube-scheduler, because Fairlead has what kube-scheduler has not:
//  - Victims are of the same queue, are preemptible, and are pods of Fairlead's.
//  - Pods that terminate are no victims: their room is given out already.
//  - Nor are pods of several budgets: the eviction API never lets them go.
//  - A pod at the minimum of its gang takes the gang along, wherever that runs.
//  - Room that was promised to a pod of lower priority is taken only if victims alone do not do.
//
// Thread-safety: the owner's thread. Complexity: O(pods of the node) evictions, each given back
// once and, for each victim, once more; as many questions to the filters.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

// The pod that waits, and whose pods may be evicted for it.
struct NodePreemptor {
  state::PodClassId pod_class = state::kNoId;
  int64_t priority = 0;
  std::string queue;  // the queue that its pods are charged to
  friend auto operator<=>(const NodePreemptor&, const NodePreemptor&) = default;
};

// What an eviction of pods costs, in the order in which kube-scheduler compares: less is better.
struct EvictionCost {
  int64_t violations = 0;        // victims beyond what their budgets allow
  int64_t highest_priority = 0;  // of a victim
  int64_t priorities = 0;        // the sum, each raised by 2^31 so that none is negative
  int64_t victims = 0;
  // The start of the victim of the highest priority that runs longest, in Unix seconds, negated.
  int64_t minus_start_s = 0;
  friend auto operator<=>(const EvictionCost&, const EvictionCost&) = default;
};

struct NodeVictims {
  std::vector<state::PodId> pods;      // the most important first
  std::vector<state::PodId> promised;  // pods that lose the promise of room there
  EvictionCost cost;
};

// Pods that are left alone, whatever their priority.
using IsSpared = absl::FunctionRef<bool(const state::PodRecord&)>;

// Nothing if the pod does not fit there even without all of them, or fits already. The hypothesis
// is as it was afterwards. `tried` grows by the number of evictions tried.
std::optional<NodeVictims> FindNodeVictims(const state::ClusterState& state, Hypothesis& what_if,
                                           const NodePreemptor& preemptor, state::NodeId node,
                                           IsSpared is_spared, uint64_t& tried);

// The pod, which has a workload, and those of its gang that go with it because too few would be
// left; none: it may not go.
std::vector<state::PodId> PodsThatGoWith(const state::ClusterState& state, state::PodId pod);

// The budgets that cover pods which may be victims there.
state::BudgetIds BudgetsAmongVictims(const state::ClusterState& state,
                                     const NodePreemptor& preemptor, state::NodeId node);

}  // namespace fairlead::engine
