// What is placed and evicted together: the tree of a workload's sub-groups (KAI's rules, v0.17).
//
// Satisfied: a leaf set has minMember active pods; an inner set has minSubGroup satisfied children
// (absent: all of them) and minMember active pods of its own. A workload without sub-groups is one
// leaf set. Active: kPipelined, kBinding, kBound, kRunning.
//
// The next step of a workload that is not satisfied is what the sets that count still lack: of a
// set with minSubGroup the first children in KAI's order that can be satisfied (below their
// threshold first, required before optional, lower active/minimum ratio, name), but before them
// those that lost pods and hold capacity without being complete. The next step of a satisfied
// workload is one extra unit: a single pod of a satisfied set, or everything that an optional set
// below its own minimum lacks. An optional set is never started in part; one that lost pods is
// completed, or evicted after the grace period (actions/stale_gangs.h).
//
// A workload gives up extra units first, then everything that runs. The minimums of each set are in
// scheduler/state/gang_sets.h. A waiting pod that is refused (PodRecord::invalid), and any pod
// without a set of its name, takes no part.
//
// Thread-safety: pure functions over the state. Complexity: O(pods + sets log sets) a question;
// GangMinimum O(sets log sets); EvictionUnits O(pods + extras * sets log sets).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

// A part of a step: pods of one set of the tree, and what its children add.
struct StepNode {
  int32_t set = 0;  // index in state::Workload::sets; 0 is the workload itself
  std::vector<state::PodId> pods;
  // How many pods of its own (children count theirs) that get real room make this set satisfied
  // with what runs already: with fewer the pods that did get room wait for the others (all are
  // promised). 0: extras, unless a part of the minimum is itself only promised (kPipelined). Then
  // it may be more than there are `pods`, and a set may be listed with no pods: promise.
  int64_t needed = 0;
  std::vector<StepNode> children;
};

struct TasksToAllocate {
  StepNode root;
  std::vector<state::PodId> pods;  // all of the tree, in its order
  bool extra = false;              // a unit above the minimum
};

// One pod, alone or in a group of its own without a topology tree: all it can do is start. The same
// is true of its equivalents.
bool IsOnePod(const state::ClusterState& state, const state::Workload& workload);
// The step of such a workload, whose pod waits, into `step`, whose memory is used again.
void StepOfOnePod(state::PodId pod, TasksToAllocate& step);

// What keeps a workload from having a step at all.
enum class Readiness : uint8_t {
  kReady,
  kNothingWaits,
  kGated,       // with the gated pods there would be enough
  kIncomplete,  // pods are missing, if only of optional sets
};

// The minimum of every set that counts is met.
bool IsSatisfied(const state::Workload& workload);
Readiness ReadinessOf(const state::ClusterState& state, const state::Workload& workload);
// Empty if not ready. Pods without a set of their name in the group take no part
// (state::PodRecord::invalid says so).
TasksToAllocate NextStep(const state::ClusterState& state, const state::Workload& workload);
// The same into `step`, whose memory is used again.
void NextStep(const state::ClusterState& state, const state::Workload& workload,
              TasksToAllocate& step);

// The steps of a workload one after another, each as if those before it had been placed.
class AllocationSequence {
 public:
  AllocationSequence(const state::ClusterState& state, const state::Workload& workload);
  ~AllocationSequence();
  // Empty if there is no more.
  [[nodiscard]] TasksToAllocate Next() const;
  // A step of Next(), now or when the pods waited the same.
  void Place(const TasksToAllocate& step);

  class Builder;

 private:
  std::unique_ptr<Builder> builder_;
};

// 0: some set, optional ones too, is below its own minimum; 1: each is exactly at it; 2: else. (A
// gang that has enough sub-groups goes on with the others in its turn by age, as in KAI.) O(sets).
int ElasticStateOf(const state::Workload& workload);
// The same as if these pods of the workload had no place.
int ElasticStateWithout(const state::ClusterState& state, const state::Workload& workload,
                        absl::Span<const state::PodId> pods);
inline int ElasticStateOf(const state::ClusterState&, const state::Workload& workload) {
  return ElasticStateOf(workload);
}
// How many pods must be active before any of the set may start: the sum over the sets that count.
int64_t GangMinimum(const state::Workload& workload, int32_t set = 0);

// What can be taken from it, first to go first; pods inside a unit in reverse task order. Only
// kBound, kRunning and kPipelined pods, and kBinding ones that are among `fresh` (null: none).
// `core` false: only what is above the minimum. First go pods of no set, then of sets that serve
// nothing (below their minimum while their parent has enough others), then of sets above their own
// minimum, each pod a unit; then satisfied sets beyond minSubGroup, each whole; children in reverse
// order. A group that is disrupted_whole is one unit, of `core`.
std::vector<std::vector<state::PodId>> EvictionUnits(const state::ClusterState& state,
                                                     const state::Workload& workload, bool core,
                                                     const std::set<state::PodId>* fresh = nullptr);

// The sets that are below their minimum although something at or below them is active, in order: 0
// is the gang itself, which lacks a required set. Empty if a pod of the workload has succeeded, and
// for a workload that is invalid: what runs is not evicted over a typing error.
std::vector<int32_t> BelowMinimum(const state::Workload& workload);

// True if BelowMinimum() would name a set with these active pods by set, and all else as the
// workload has it. `active`: of each set, as state::Workload::active.
bool WouldBeBelowMinimum(const state::Workload& workload, absl::Span<const int32_t> active);

}  // namespace fairlead::engine
