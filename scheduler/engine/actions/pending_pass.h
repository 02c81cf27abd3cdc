// One walk over all that waits, in queue order: which workload has its turn, whether it may start
// at all, and what its next step asks for. What is done about the step is the action's.
//
// Workloads of queues that do not exist, are broken or are not leaves never get a turn; they have
// their outcome first. What holds the first of equivalent workloads holds the others, so the walk
// leaves them out behind it (pending.h). With a depth (queueDepth.allocate) they count as
// evaluated, and those beyond it have an entry of their own. When the work of the cycle is spent
// (walk_budget.h), nothing that is left in any queue has a turn.
//
// Ownership: one object for one execution; borrows the context. Thread-safety: the owner's thread.
// Complexity: O(log n) a turn, plus what Visit() costs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "scheduler/engine/cycle_context.h"

namespace fairlead::engine {

class PendingPass {
 public:
  explicit PendingPass(CycleContext& context) : c_(context), in_(context.in) {}
  PendingPass(const PendingPass&) = delete;
  PendingPass& operator=(const PendingPass&) = delete;
  virtual ~PendingPass() = default;

  void Run();

 protected:
  // What the workload whose turn it is asks for. Its parts may be moved away.
  struct NextJob {
    TasksToAllocate step;
    model::Resources request;
    // While `step` is still to be made: the pod of a workload that is one pod.
    bool listed = false;
    state::PodId only_pod = state::kNoId;
  };
  enum class Turn : uint8_t {
    kDone,
    kAgain,    // the workload made progress and may ask for more
    kHeldAll,  // whatever holds it also holds its equivalents
  };
  virtual Turn Visit(queues::QueueId leaf, const state::Workload& workload, NextJob& next) = 0;
  // Before the walk: places workloads that do not wait for their turn, and files them in served_.
  virtual void ServeFirst() {}
  // After the walk.
  virtual void Finish() {}

  // True, and the outcome is written, if a limit or a quota holds the step.
  bool HeldByLimit(queues::QueueId leaf, const state::Workload& workload,
                   const TasksToAllocate& step, const model::Resources& request);
  void RecordViolation(queues::QueueId leaf, const state::Workload& workload,
                       const TasksToAllocate& step, const model::Resources& request,
                       const queues::LimitViolation& violation);
  // The step lacks nothing but capacity. `code` and `subject` stand if this is the first step of
  // the workload in this cycle.
  Outcome& RecordUnmet(queues::QueueId leaf, const state::Workload& workload, TasksToAllocate step,
                       model::Resources request, state::PodId failed, verdict::Code code,
                       std::string subject);

  CycleContext& c_;
  const CycleInputs& in_;
  absl::flat_hash_set<state::WorkloadId> served_;  // by ServeFirst()

 private:
  void RefuseUnservable();
  // The workload whose turn it would be in the leaf queue; null if none is left.
  const model::Resources* PeekNext(queues::QueueId leaf, JobIterator& walk);
  // What must hold before anything is tried. False: the outcome is written.
  bool MayStart(queues::QueueId leaf, const state::Workload& workload);
  // Makes the step, if PeekNext() has not.
  void ListStep(const state::Workload& workload, NextJob& next) const;
  // Fills next_[leaf]. False, and the outcome is written, if a pod of the step is refused on every
  // node, whatever the node's object and load.
  bool PrepareNext(queues::QueueId leaf, const state::Workload& workload);
  // The outcome of a workload with a pod that is refused on every node, for that reason.
  void RecordRefusal(const state::Workload& workload, const state::PodRecord& pod,
                     const std::string& why, Outcome& outcome) const;
  // The outcome of a group whose one attempt has failed (schedulingBackoff).
  void RefuseForBackoff(queues::QueueId leaf, const state::Workload& workload);
  // The outcome of a workload that is too far back in its queue (queueDepth).
  Outcome& RefuseForDepth(queues::QueueId leaf, const state::Workload& workload);
  // The work of the cycle is spent, and the workload had no turn (max_walk_work).
  void PutOff(queues::QueueId leaf, const state::Workload& workload, JobIterator& walk);
  // After the walk: of both, what a limit would hold as well has that as its outcome.
  void NameLimitsOfUntried();
  // What the cycle does about the workload that was popped.
  void TakeTurn(queues::QueueId leaf, const state::Workload& workload, JobIterator& walk);
  // Passes workloads that were left out, and counts them as evaluated.
  void PassLeftOut(queues::QueueId leaf, JobIterator& walk);
  // If the leaf queue's depth is reached: what was left out and is behind it was not evaluated.
  void RefuseLeftOutForDepth(queues::QueueId leaf, JobIterator& walk);
  [[nodiscard]] bool HasDepth() const { return in_.options.allocate_depth != model::kUnlimited; }

  std::map<queues::QueueId, NextJob> next_;  // of the head of each leaf queue
  // Workloads of the leaf queue that were evaluated; counted only with a depth.
  std::map<queues::QueueId, int64_t> evaluated_;
  std::vector<state::WorkloadId> untried_;
  // What the next step of a member asks for, of equivalence classes (by id) whose members may
  // start: found out once for all of them.
  absl::flat_hash_map<uint64_t, model::Resources> request_of_class_;
  // Why no node takes a pod of the class; empty: some may.
  absl::flat_hash_map<state::PodClassId, std::string> refused_everywhere_;
};

}  // namespace fairlead::engine
