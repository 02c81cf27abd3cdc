// What one cycle finds out about each workload that waits, before it is put into a verdict.
//
// Ownership: an OutcomeTable lives for one cycle and borrows the state. Thread-safety: the owner's
// thread. Complexity: O(1) a look-up, O(n log late) for Sort() of n rows.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "queues/limits.h"
#include "scheduler/engine/domain_rules.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

struct Outcome {
  state::WorkloadId workload = state::kNoId;
  queues::QueueId leaf = PendingIndex::kNoQueue;
  verdict::Code code = verdict::Code::kNone;
  std::optional<queues::LimitViolation> violation;
  std::string subject;
  std::vector<std::string> details;
  std::optional<absl::Time> until;
  // The tasks that did not get a place, and the pod of them for which no node was found.
  TasksToAllocate step;
  model::Resources step_request;
  state::PodId failed_pod = state::kNoId;
  // Some set of the workload has a topology constraint.
  bool bound_to_topology = false;
  // Of a workload that is bound to a topology and lacks capacity: what nodes for it would have in
  // common, and of these rules why none would help. Null: not asked for, or there is no problem.
  std::shared_ptr<const DomainRules> domains;
  const DomainRules::Problem* domain_problem = nullptr;
  std::vector<Waiting::PodPromise> promises;
  std::vector<state::PodId> demanded;  // pods that the hook may buy for, those of `step` first
  size_t demanded_of_step = 0;         // how many of them are pods of `step`
  // Of its step others find room on the nodes that there are, and wait for these.
  bool fits_in_part = false;
  // Places for a part of a step that is bound to one domain of a topology. All of the step is
  // demanded all the same, because nodes in another domain may be cheaper, or the only ones.
  struct Room {
    std::vector<std::string> values;   // of the domain, as verdict::DomainRoom has them
    std::vector<state::PodId> others;  // pods of the step without a place there
  };
  std::optional<Room> room;
  bool whole_demand = true;  // false: a limit holds some pods of it back
  uint64_t demand_kind = 0;  // Waiting::demand_kind and ::uncharged
  bool uncharged = false;
  // The queue whose guaranteed quota (lendingLimit) the workload would take, and whether nodes for
  // this workload alone would not change that.
  std::string keeper;
  bool kept_beyond_cluster = false;
  // The workload waits behind a reservation of its own queue, so no pod is evicted for it
  // (reservation.h).
  bool behind = false;
  int64_t position = 0;
  bool awaits = false;           // kGated: a plugin has not judged all nodes yet
  bool tried = true;             // false: its turn did not come
  bool victims_sought = false;   // a search of reclaim or preempt was finished, and found none
  bool served_first = false;     // as a preemptor
  bool stepped_forward = false;  // since the last OutcomeTable::Sort()
  // Equivalent workloads behind this one, which wait for the same reason and have no row.
  MemberRange rest;

  // True if both wait for the same reason, and pods of the same classes are demanded for both. For
  // equivalents.
  [[nodiscard]] bool HasResultOf(const Outcome& other, const state::ClusterState& state) const;
};

// What is true of one step is true of every step of the same kind and at least its size.
struct StepKind {
  std::string text;  // of steps with a topology, sub-groups or several classes; then exact
  state::PodClassId pod_class = state::kNoId;
  friend auto operator<=>(const StepKind&, const StepKind&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StepKind& kind) {
    return H::combine(std::move(h), kind.text, kind.pod_class);
  }
};
StepKind KindOf(const state::ClusterState& state, const state::Workload& workload,
                const TasksToAllocate& step);

verdict::Code CodeOf(const queues::LimitViolation& violation);

// The outcome of the first workload of `rest`, as `former` has it; the others are behind it.
Outcome OutcomeOfNext(const state::ClusterState& state, const Outcome& former,
                      const MemberRange& rest);

// One row for each workload that a cycle has looked at, in queue order once Sort() has run.
// References to rows are valid until a row is added.
class OutcomeTable {
 public:
  explicit OutcomeTable(const state::ClusterState& state) : state_(state) {}

  // Returns the row of the workload, which is added at the end if there is none.
  Outcome& Of(const state::Workload& workload, queues::QueueId leaf);
  [[nodiscard]] bool Contains(state::WorkloadId workload) const {
    return index_.contains(workload);
  }
  // The workload has to have a row.
  [[nodiscard]] Outcome& At(state::WorkloadId workload) { return rows_[index_.at(workload)]; }
  [[nodiscard]] Outcome& operator[](size_t position) { return rows_[position]; }
  [[nodiscard]] const Outcome& operator[](size_t position) const { return rows_[position]; }
  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] std::vector<Outcome>& rows() { return rows_; }
  [[nodiscard]] const std::vector<Outcome>& rows() const { return rows_; }

  // Gives the first workload behind row `position` a row of its own, as `before` was; returns its
  // position.
  size_t StepForward(size_t position, const Outcome& before);
  // The row was added late: the next Sort() finds its place by age.
  void MarkLate(Outcome& outcome) { unsorted_ = outcome.stepped_forward = true; }
  // Merges late rows into the rows of their leaf queue.
  void Sort();

  // Where the workload stood in its queue before this cycle promised it anything.
  [[nodiscard]] QueueOrderKey KeyOf(const Outcome& outcome) const;

  // Takes all rows out; each has to be given to Append() again.
  std::vector<Outcome> Release();
  void Append(Outcome outcome);

  // Numbers the rows of each leaf queue from 1, those without a row counted in.
  void AssignPositions();

 private:
  const state::ClusterState& state_;
  std::vector<Outcome> rows_;
  absl::flat_hash_map<state::WorkloadId, size_t> index_;  // into rows_
  bool unsorted_ = false;
};

}  // namespace fairlead::engine
