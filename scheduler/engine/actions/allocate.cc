#include "scheduler/engine/actions/allocate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/actions/pending_pass.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;
using verdict::Code;

class AllocatePass final : public PendingPass {
 public:
  using PendingPass::PendingPass;

 private:
  // Kinds of steps that found no place: steps of at least this many pods do not.
  using Failures = absl::flat_hash_map<StepKind, int64_t>;

  Turn Visit(queues::QueueId leaf, const state::Workload& workload, NextJob& next) override;
  void ServeFirst() override;
  void Finish() override;
  // True if the preemptor's step was placed or promised. Nothing is recorded of one that was not:
  // its turn in the walk does.
  bool ServePreemptor(const Preemptor& preemptor);
  // True if the step was placed or promised.
  bool Place(queues::QueueId leaf, const state::Workload& workload, NextJob& next);
  // Tries to place the step. True if it was placed or promised, or if a bound of a variant holds
  // it and the outcome is written (`placed` tells which). `held`: the workload for which the
  // capacity is reserved that it would need.
  bool TryPlace(queues::QueueId leaf, const state::Workload& workload, const NextJob& next,
                bool& placed, Placement& placement, state::WorkloadId& held);
  // True if the step would take guaranteed quota of other queues: it was promised capacity that
  // comes up (`promised`), or it waits and the outcome is written.
  bool HeldByLending(queues::QueueId leaf, const state::Workload& workload, const NextJob& next,
                     bool& promised);
  // True, and the outcome is written, if a gang of its queue that waits for capacity comes first.
  bool HeldByReservation(queues::QueueId leaf, const state::Workload& workload, NextJob& next);
  // The operations of a committed step become bindings and promises.
  void Assume(queues::QueueId leaf, const state::Workload& workload,
              const state::Transaction::Operations& operations);
  // Promises of a step count against no limit until the walk has ended, because some of their nodes
  // are late.
  struct LatePromises {
    queues::QueueId leaf;
    state::WorkloadId workload;
    std::vector<state::PodId> pods;
    model::Resources charge;
  };
  [[nodiscard]] bool AreLate(const state::Workload& workload,
                             const std::vector<state::PodId>& promised) const;
  void TakeBack(const LatePromises& promises, const queues::LimitViolation& violation);
  // The step would hold capacity of present nodes while it waits for late ones.
  [[nodiscard]] bool WaitsBesideLateNodes(const state::Transaction& txn) const;
  // What held the workload holds its equivalents too.
  [[nodiscard]] bool HoldsEquivalents(const state::Workload& workload);
  // Files in failed_ that the step found no place. Returns its kind.
  StepKind FileFailure(const state::Workload& workload, const TasksToAllocate& step);
  [[nodiscard]] bool AnyFailed() const { return !failed_.empty() || !failed_reserved_.empty(); }
  // Steps of the kind fail because capacity is reserved, as the last one did; for which workload.
  [[nodiscard]] state::WorkloadId KnownHolder(const StepKind& kind, size_t pods) const;

  Failures failed_;
  // The same of steps that failed because capacity is reserved, and the workload that has it.
  absl::flat_hash_map<StepKind, std::pair<int64_t, state::WorkloadId>> failed_reserved_;
  uint32_t steps_ = 0;  // placed so far
  std::vector<LatePromises> late_;
  // Steps that would have held capacity beside late nodes: they are placed after all others.
  struct Deferred {
    queues::QueueId leaf;
    state::WorkloadId workload;
    StepKind kind;
  };
  std::vector<Deferred> deferred_;
  bool finishing_ = false;  // nothing is deferred any more
};

void AllocatePass::ServeFirst() {
  in_.preemptors.Serve([this](const Preemptor& preemptor) {
    if (!ServePreemptor(preemptor)) return false;
    served_.insert(preemptor.workload);
    if (!c_.outcomes.Contains(preemptor.workload)) return false;  // all of it is bound
    Outcome& outcome = c_.outcomes.At(preemptor.workload);
    outcome.served_first = true;
    c_.outcomes.MarkLate(outcome);
    return true;
  });
}

bool AllocatePass::ServePreemptor(const Preemptor& preemptor) {
  const state::Workload& workload = in_.state.workload(preemptor.workload);
  const queues::QueueId leaf = preemptor.leaf;
  if (in_.tree.Find(workload.queue) != leaf || !in_.tree.Usable(leaf) || !in_.tree.IsLeaf(leaf) ||
      (!workload.plain && !workload.details->invalid.empty()) ||
      (workload.is_group && workload.group == nullptr) || workload.GaveUp() ||
      ReadinessOf(in_.state, workload) != Readiness::kReady) {
    return false;
  }
  const TasksToAllocate step = NextStep(in_.state, workload);
  const model::Resources request = c_.ChargeOf(step.pods);
  if (!request.FitsIn(preemptor.request) || c_.InBackoff(step) ||
      queues::CheckLimits(in_.tree, in_.tracker.ledger(), leaf, request, workload.preemptible)
          .has_value() ||
      c_.lending.Check(leaf, request).has_value()) {
    return false;
  }
  if (in_.reservations.any() &&
      in_.reservations.BehindOf(in_.reservations.RequesterOf(workload), request) != state::kNoId) {
    return false;
  }
  state::Transaction txn(in_.state);
  std::optional<queues::LimitViolation> broken;
  const bool placed =
      c_.variants
          .Place(in_.placer, txn, leaf, workload, step, Placer::Mode::kStart, nullptr, broken)
          .placed;
  if (placed) Assume(leaf, workload, txn.Commit());
  return placed;
}

PendingPass::Turn AllocatePass::Visit(queues::QueueId leaf, const state::Workload& workload,
                                      NextJob& next) {
  if (Place(leaf, workload, next)) return Turn::kAgain;
  return HoldsEquivalents(workload) ? Turn::kHeldAll : Turn::kDone;
}

bool AllocatePass::HoldsEquivalents(const state::Workload& workload) {
  if (!c_.outcomes.Contains(workload.id)) return false;
  if (in_.reservations.any() &&
      !in_.reservations.IsFirstOfEquals(in_.reservations.RequesterOf(workload))) {
    return false;
  }
  const Outcome& outcome = c_.outcomes.At(workload.id);
  return outcome.promises.empty() &&
         (outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kQueueLimitReached ||
          outcome.code == Code::kNonPreemptibleOverQuota ||
          outcome.code == Code::kTopologyInfeasible || outcome.code == Code::kMissingObject ||
          outcome.code == Code::kInvalidRequest || outcome.code == Code::kGated);
}

bool AllocatePass::Place(queues::QueueId leaf, const state::Workload& workload, NextJob& next) {
  if (next.step.pods.empty() || c_.InBackoff(next.step)) return false;
  if (HeldByLimit(leaf, workload, next.step, next.request)) return false;
  bool promised = false;
  if (HeldByLending(leaf, workload, next, promised)) return promised;
  if (HeldByReservation(leaf, workload, next)) return false;
  const StepKind kind = AnyFailed() ? KindOf(in_.state, workload, next.step) : StepKind();
  const bool ordinary =
      in_.reservations.any() && in_.reservations.IsOrdinary(in_.reservations.RequesterOf(workload));
  state::WorkloadId held =
      ordinary ? KnownHolder(kind, next.step.pods.size()) : state::WorkloadId{state::kNoId};
  const auto known = failed_.find(kind);
  const auto count = static_cast<int64_t>(next.step.pods.size());
  Placement placement;
  if (held == state::kNoId && (known == failed_.end() || count < known->second)) {
    bool placed = false;
    if (TryPlace(leaf, workload, next, placed, placement, held)) return placed;
    if (held != state::kNoId && ordinary) {
      failed_reserved_[KindOf(in_.state, workload, next.step)] = {count, held};
    }
  }
  const Code code = placement.topology_invalid      ? Code::kMissingObject
                    : placement.topology_infeasible ? Code::kTopologyInfeasible
                                                    : Code::kInsufficientCapacity;
  const state::PodId failed =
      placement.failed != state::kNoId ? placement.failed : next.step.pods.front();
  Outcome& outcome = RecordUnmet(leaf, workload, std::move(next.step), std::move(next.request),
                                 failed, code, std::move(placement.topology_reason));
  if (held != state::kNoId) outcome.details.push_back(in_.reservations.DescribeHold(held));
  return false;
}

bool AllocatePass::TryPlace(queues::QueueId leaf, const state::Workload& workload,
                            const NextJob& next, bool& placed, Placement& placement,
                            state::WorkloadId& held) {
  state::Transaction txn(in_.state);
  // Behind its own promise a workload starts nothing: its pods go in order.
  const auto mode =
      workload.Count(PodStatus::kPipelined) > 0 ? Placer::Mode::kPromise : Placer::Mode::kStart;
  std::optional<queues::LimitViolation> broken;
  placement = c_.variants.Place(in_.placer, txn, leaf, workload, next.step, mode, nullptr, broken);
  placed = placement.placed;
  if (placed && WaitsBesideLateNodes(txn)) {
    // Equal steps would be placed as this one.
    deferred_.push_back({leaf, workload.id, FileFailure(workload, next.step)});
    placed = false;
    return true;
  }
  if (placed) {
    Assume(leaf, workload, txn.Commit());
    return true;
  }
  if (broken.has_value()) {
    RecordViolation(leaf, workload, next.step, next.request, *broken);
    return true;
  }
  held = placement.kept_for;
  if (held == state::kNoId) FileFailure(workload, next.step);
  return false;
}

StepKind AllocatePass::FileFailure(const state::Workload& workload, const TasksToAllocate& step) {
  const StepKind kind = KindOf(in_.state, workload, step);
  const auto count = static_cast<int64_t>(step.pods.size());
  const auto [it, added] = failed_.try_emplace(kind, count);
  if (!added) it->second = std::min(it->second, count);
  return kind;
}

state::WorkloadId AllocatePass::KnownHolder(const StepKind& kind, size_t pods) const {
  const auto known = failed_reserved_.find(kind);
  if (known == failed_reserved_.end()) return state::kNoId;
  const auto& [count, holder] = known->second;
  const bool holds =
      in_.state.workload(holder).Active() == 0 && static_cast<int64_t>(pods) >= count;
  return holds ? holder : state::WorkloadId{state::kNoId};
}

bool AllocatePass::HeldByLending(queues::QueueId leaf, const state::Workload& workload,
                                 const NextJob& next, bool& promised) {
  promised = false;
  const auto refusal = c_.lending.Check(leaf, next.request);
  if (!refusal.has_value()) return false;
  // What was bought for the workload is its own: it waits there, and takes no guaranteed quota.
  if (c_.lending.FitsUpcoming(leaf, next.request)) {
    state::Transaction txn(in_.state);
    std::optional<queues::LimitViolation> broken;
    promised = c_.variants
                   .Place(in_.placer, txn, leaf, workload, next.step, Placer::Mode::kPromise,
                          c_.lending.Upcoming().nodes, broken)
                   .placed;
    if (promised) {
      Assume(leaf, workload, txn.Commit());
      return true;
    }
  }
  c_.lending.DescribeKeeper(
      *refusal, RecordUnmet(leaf, workload, next.step, next.request, next.step.pods.front(),
                            Code::kInsufficientCapacity, ""));
  return true;
}

bool AllocatePass::HeldByReservation(queues::QueueId leaf, const state::Workload& workload,
                                     NextJob& next) {
  if (!in_.reservations.any()) return false;
  const state::WorkloadId first =
      in_.reservations.BehindOf(in_.reservations.RequesterOf(workload), next.request);
  if (first == state::kNoId) return false;
  const state::PodId failed = next.step.pods.front();
  Outcome& outcome = RecordUnmet(leaf, workload, std::move(next.step), std::move(next.request),
                                 failed, Code::kInsufficientCapacity, "");
  outcome.behind = true;
  outcome.details.push_back(in_.reservations.DescribeHold(first));
  return true;
}

void AllocatePass::Assume(queues::QueueId leaf, const state::Workload& workload,
                          const state::Transaction::Operations& operations) {
  std::vector<state::PodId> promised;
  ++steps_;
  for (const state::Transaction::Operation& operation : operations) {
    if (operation.kind == state::Transaction::OperationKind::kAllocate) {
      in_.state.SetStartedAt(operation.pod, in_.now);
      c_.decisions.bindings.push_back({operation.pod, operation.node, steps_});
    } else {
      promised.push_back(operation.pod);
    }
  }
  if (promised.empty()) return;
  c_.RecordPromises(workload, leaf, promised, /*victims_chosen=*/false);
  if (!AreLate(workload, promised)) return;
  model::Resources charge = c_.ChargeOf(promised);
  in_.tracker.Release(leaf, charge, workload.preemptible);
  late_.push_back({leaf, workload.id, std::move(promised), std::move(charge)});
}

bool AllocatePass::AreLate(const state::Workload& workload,
                           const std::vector<state::PodId>& promised) const {
  if (in_.is_late == nullptr || finishing_) return false;
  // Its pods go in order.
  if (std::any_of(late_.begin(), late_.end(),
                  [&](const LatePromises& former) { return former.workload == workload.id; })) {
    return true;
  }
  return std::any_of(promised.begin(), promised.end(), [this](state::PodId pod) {
    const state::NodeInfo& node = in_.state.node(in_.state.pod(pod).node);
    return !node.TakesBindings() && in_.is_late(node);
  });
}

bool AllocatePass::WaitsBesideLateNodes(const state::Transaction& txn) const {
  if (in_.is_late == nullptr || finishing_) return false;
  bool late = false;
  bool present = false;
  txn.ForEachOperation([&](const state::Transaction::Operation& operation) {
    if (operation.kind != state::Transaction::OperationKind::kPipeline) return;
    const state::NodeInfo& node = in_.state.node(operation.node);
    if (node.TakesBindings()) {
      present = true;
    } else if (in_.is_late(node)) {
      late = true;
    }
  });
  return late && present;
}

void AllocatePass::Finish() {
  std::map<state::WorkloadId, queues::LimitViolation> held;
  for (const LatePromises& promises : late_) {
    const bool preemptible = in_.state.workload(promises.workload).preemptible;
    const auto violation = queues::CheckLimits(in_.tree, in_.tracker.ledger(), promises.leaf,
                                               promises.charge, preemptible);
    in_.tracker.Charge(promises.leaf, promises.charge, preemptible);
    if (violation.has_value()) held.try_emplace(promises.workload, *violation);
    if (const auto found = held.find(promises.workload); found != held.end()) {
      TakeBack(promises, found->second);
    }
  }
  late_.clear();
  finishing_ = true;
  for (const Deferred& deferred : deferred_) {
    failed_.erase(deferred.kind);
    const state::Workload& workload = in_.state.workload(deferred.workload);
    bool again = true;
    while (again && ReadinessOf(in_.state, workload) == Readiness::kReady) {
      NextJob next;
      next.step = NextStep(in_.state, workload);
      next.listed = true;
      next.request = c_.ChargeOf(next.step.pods);
      again = Place(deferred.leaf, workload, next);
    }
    if (c_.outcomes.Contains(workload.id)) c_.outcomes.MarkLate(c_.outcomes.At(workload.id));
  }
}

void AllocatePass::TakeBack(const LatePromises& promises, const queues::LimitViolation& violation) {
  const state::Workload& workload = in_.state.workload(promises.workload);
  Outcome& outcome = c_.outcomes.At(workload.id);
  for (const state::PodId pod : promises.pods) {
    c_.pipelined.Remove(pod);
    state::ReleasePromise(in_.state, pod);
    std::erase_if(outcome.promises, [pod](const auto& promise) { return promise.pod == pod; });
  }
  if (!outcome.promises.empty()) return;
  outcome.code = CodeOf(violation);
  outcome.violation = violation;
  outcome.step = NextStep(in_.state, workload);
  outcome.step_request = c_.ChargeOf(outcome.step.pods);
  outcome.failed_pod = outcome.step.pods.front();
}

class QueueUpPass final : public PendingPass {
 public:
  using PendingPass::PendingPass;

 private:
  Turn Visit(queues::QueueId leaf, const state::Workload& workload, NextJob& next) override {
    if (next.step.pods.empty() || c_.InBackoff(next.step)) return Turn::kDone;
    if (HeldByLimit(leaf, workload, next.step, next.request)) return Turn::kHeldAll;
    const state::PodId first = next.step.pods.front();
    RecordUnmet(leaf, workload, std::move(next.step), std::move(next.request), first,
                Code::kInsufficientCapacity, "");
    return Turn::kHeldAll;
  }
};

}  // namespace

void Allocate::Execute(CycleContext& context) const { AllocatePass(context).Run(); }

void QueueUp::Execute(CycleContext& context) const { QueueUpPass(context).Run(); }

}  // namespace fairlead::engine
