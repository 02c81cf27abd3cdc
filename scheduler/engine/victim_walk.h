// The units that leaf queues can give up, made as they are reached, in the order of eviction.
//
// A workload gives one extra pod at a time and takes its new place in the order after each, so
// that workloads above their minimum give before any that is at it; the rest of it goes as one
// unit.
//
// Thread-safety: the owner's thread. The victim index must not change while a walk lives.
// Complexity: O(log n) a unit; a workload is looked at when it is reached.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "queues/tree.h"
#include "scheduler/engine/allocation_tracker.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/move_history.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/victim_budgets.h"
#include "scheduler/engine/victim_index.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/parts.h"

namespace fairlead::engine {

struct VictimUnit {
  queues::QueueId leaf = 0;
  state::WorkloadId workload = state::kNoId;
  bool core = false;       // the rest of the workload, not an extra pod of it
  bool must_move = false;  // it may not be taken, only moved
  std::vector<state::PodId> pods;
  // Where each pod is before it is evicted.
  struct Place {
    state::NodeId node = state::kNoId;
    state::Parts parts;
    state::ZonePick zones;
    bool promised = false;  // it has a promise of that place, and is not there
    bool fresh = false;     // bound there in this cycle: nothing is sent yet
  };
  std::vector<Place> places;
  model::Resources charge;  // to its queue, of variants too
  BudgetNeeds budgets;
};

struct VictimFilter {
  absl::Time now;
  // Minimum runtime: younger workloads give extras only.
  absl::Duration protection = absl::ZeroDuration();
  // Only workloads of lower priority than this; none: all.
  std::optional<int64_t> below_priority;
  state::WorkloadId except = state::kNoId;
  // Pods that this cycle has moved already: their workloads are left alone. Null: none.
  const std::set<state::PodId>* moved = nullptr;
  // Pods that this cycle has bound; they may be taken like those that run. Null: none.
  const std::set<state::PodId>* fresh = nullptr;
  // Pods of which an eviction was refused are left alone, with the core of their workload. Null:
  // none.
  const EvictionRefusals* refusals = nullptr;
  std::vector<state::PodClassId> preemptors = {};  // of the pods for which they would go
  // Pods that started too short a time ago to be moved are left alone, with the core of their
  // workload. Null: none.
  const MoveHistory* moves = nullptr;
  bool movable_only = false;  // only workloads that may be moved, without pods that have to stay
};

// Some of the pods are not to be moved (state::PodRecord::do_not_disrupt).
bool AnyStays(const state::ClusterState& state, const std::vector<state::PodId>& pods);

// Each once.
std::vector<state::PodClassId> ClassesOf(const state::ClusterState& state,
                                         const std::vector<state::PodId>& pods);

// The victims of one leaf queue. Workloads of which everything is being bound have nothing to give
// yet, and there may be as many as one decision has placed: behind kMaxBeingBound of them the walk
// ends, and goes on when the answers have come. So it does behind kMaxTooYoung workloads with pods
// that started too short a time ago to be moved.
class LeafVictims {
 public:
  static constexpr int64_t kMaxBeingBound = 32;
  static constexpr size_t kMaxTooYoung = 1024;

  LeafVictims(const state::ClusterState& state, const AllocationTracker& tracker,
              const VictimIndex::Leaf& workloads, queues::QueueId leaf, const VictimFilter& filter)
      : state_(state),
        tracker_(tracker),
        workloads_(workloads),
        leaf_(leaf),
        filter_(filter),
        next_(workloads.begin()) {}

  // The unit whose turn it is; null if there are no more.
  [[nodiscard]] const VictimUnit* Peek();
  // After Peek() gave one.
  VictimUnit Take();
  // No more from this leaf, until Reopen(); whose turn it is keeps it.
  void Close() { closed_ = true; }
  void Reopen() { closed_ = false; }
  // Nothing more of this workload, of which a unit was taken.
  void LeaveOut(state::WorkloadId workload);

  // How many of its workloads their minimum runtime protects, and when it ends for the first of
  // them. O(all of them), if any can be.
  struct Protection {
    int64_t workloads = 0;
    absl::Time first_end = absl::InfiniteFuture();
  };
  [[nodiscard]] Protection Protected() const;
  // When the first of the pods that were reached and are too young may be moved.
  [[nodiscard]] absl::Time first_movable() const { return first_movable_; }
  // How many pods of the workloads that were reached stay because an eviction was refused.
  [[nodiscard]] int64_t refused() const { return refused_; }
  [[nodiscard]] int64_t refused_by_extenders() const { return refused_by_extenders_; }
  // And the budgets that refused it, where they are known.
  [[nodiscard]] const std::set<std::string>& refusing() const { return refusing_; }

 private:
  struct Opened {
    std::vector<VictimUnit> units;
    size_t at = 0;
  };
  // Lower priorities come first, so the first that is not ends the walk.
  [[nodiscard]] bool Concerned(const QueueOrderKey& key) const {
    return !filter_.below_priority.has_value() || -key.minus_priority < *filter_.below_priority;
  }
  [[nodiscard]] bool IsProtected(const state::Workload& workload) const;
  // All of the workload that is active is being bound, and not by this cycle.
  [[nodiscard]] bool IsBeingBound(const state::Workload& workload) const;
  void Open(const QueueOrderKey& key);
  // An eviction of one of them was refused.
  bool IsRefused(const std::vector<state::PodId>& pods);
  // One of them started too short a time ago. `start`: of their workload.
  bool IsTooYoung(const state::Workload& workload, absl::Time start,
                  const std::vector<state::PodId>& pods);

  const state::ClusterState& state_;
  const AllocationTracker& tracker_;
  const VictimIndex::Leaf& workloads_;
  const queues::QueueId leaf_;
  const VictimFilter filter_;
  VictimIndex::Leaf::const_iterator next_;
  std::map<QueueOrderKey, Opened, std::greater<>> opened_;
  bool closed_ = false;
  int64_t being_bound_ = 0;  // workloads that were passed over because all of them is
  size_t too_young_ = 0;     // workloads
  absl::Time first_movable_ = absl::InfiniteFuture();
  int64_t refused_ = 0;
  int64_t refused_by_extenders_ = 0;  // of these
  std::set<std::string> refusing_;
};

VictimUnit::Place PlaceOf(const state::ClusterState& state, const state::PodRecord& pod);
void EvictAll(Hypothesis& what_if, const std::vector<VictimUnit>& units);

using VictimWalks = std::map<queues::QueueId, LeafVictims>;

}  // namespace fairlead::engine
