// The action allocate: workloads in the order of queues, each step on the best nodes.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/cycle.h"

namespace fairlead::engine {

using state::PodStatus;
using verdict::Code;

// Workloads of queues that do not exist, are broken or are not leaves never reach the order of
// service.
void Cycle::Unservable() {
  for (const auto& [queue, leaf] : p_.pending.leaves()) {
    Code code = Code::kNone;
    std::string subject;
    if (queue == PendingIndex::kNoQueue || !p_.tree.Exists(queue)) {
      code = Code::kQueueNotFound;
    } else if (p_.tree.Problem(queue).has_value()) {
      code = Code::kQueueNotFound;
      subject = *p_.tree.Problem(queue);
    } else if (!p_.tree.IsLeaf(queue)) {
      code = Code::kQueueNotLeaf;
    }
    if (code == Code::kNone) continue;
    for (const Crowd* crowd : leaf.crowds()) {
      const state::Workload& workload = p_.state.workload(crowd->members.begin()->workload);
      Outcome& outcome = OutcomeOf(workload, queue);
      outcome.code = code;
      outcome.subject = subject;
      if (!workload.details->invalid.empty()) {
        outcome.code = Code::kInvalidRequest;
        outcome.subject = workload.details->invalid;
      }
      const auto behind = static_cast<int64_t>(crowd->members.size()) - 1;
      if (behind > 0) outcome.rest = {crowd, std::next(crowd->members.begin()), behind};
    }
  }
}

bool Cycle::MayStart(queues::QueueId leaf, const state::Workload& workload) {
  Code code = Code::kNone;
  std::string subject;
  if (!workload.plain && !workload.details->invalid.empty()) {
    code = Code::kInvalidRequest;
    subject = workload.details->invalid;
  } else if (workload.is_group && workload.group == nullptr) {
    code = Code::kMissingObject;
    subject = absl::StrCat("PodGroup ", workload.ns, "/", workload.name);
  } else {
    switch (ReadinessOf(p_.state, workload)) {
      case Readiness::kReady:
        if (!workload.GaveUp()) return true;
        LeaveOut(leaf, workload);
        return false;
      case Readiness::kNothingWaits:
      case Readiness::kGated:
        code = Code::kGated;
        break;
      case Readiness::kIncomplete:
        code = Code::kGangIncomplete;
        break;
    }
    // What cannot be understood is the first thing to mend.
    for (state::PodId id : workload.pods) {
      const state::PodRecord& pod = p_.state.pod(id);
      if (pod.status != PodStatus::kPending || pod.details->invalid.empty()) continue;
      code = Code::kInvalidRequest;
      subject = workload.is_group ? absl::StrCat("pod ", pod.name, ": ", pod.details->invalid)
                                  : pod.details->invalid;
      break;
    }
  }
  Outcome& outcome = OutcomeOf(workload, leaf);
  outcome.code = code;
  outcome.subject = subject;
  return false;
}

bool Cycle::PrepareNext(queues::QueueId leaf, const state::Workload& workload) {
  NextJob& next = next_[leaf];
  next.step = NextStep(p_.state, workload);
  state::PodClassId last = state::kNoId;
  for (const state::PodId id : next.step.pods) {
    const state::PodRecord& pod = p_.state.pod(id);
    if (pod.pod_class == last) continue;
    last = pod.pod_class;
    const auto [known, added] = refused_everywhere_.try_emplace(last);
    if (added) known->second = p_.framework.RefusesEverywhere(p_.state.pod_class(last));
    if (known->second.empty()) continue;
    Outcome& outcome = OutcomeOf(workload, leaf);
    if (outcome.code != Code::kNone) return false;  // what was said of an earlier step stands
    outcome.code = Code::kInvalidRequest;
    outcome.subject =
        workload.is_group ? absl::StrCat("pod ", pod.name, ": ", known->second) : known->second;
    return false;
  }
  next.request = ChargeOf(next.step.pods);
  return true;
}

void Cycle::LeaveOut(queues::QueueId leaf, const state::Workload& workload) {
  const model::FailedAttempt& attempt = *workload.details->failed_attempt;
  Outcome& outcome = OutcomeOf(workload, leaf);
  outcome.code = Code::kSchedulingBackoff;
  outcome.subject = attempt.node_pool;
  if (attempt.reason.empty()) return;
  outcome.details.push_back(absl::StrCat("the attempt failed with ", attempt.reason,
                                         attempt.message.empty() ? "" : ": ", attempt.message));
}

bool Cycle::InBackoff(const GangStep& step) const {
  if (p_.backoff.empty()) return false;
  return std::any_of(step.pods.begin(), step.pods.end(), [&](state::PodId pod) {
    const auto it = p_.backoff.find(p_.state.pod(pod).uid);
    return it != p_.backoff.end() && it->second.first > now_;
  });
}

bool Cycle::HoldsItsCrowd(const state::Workload& workload) const {
  const auto found = index_.find(workload.id);
  if (!fold_ || found == index_.end()) return false;
  if (p_.reservations.any() &&
      !p_.reservations.IsFirstOfEquals(p_.reservations.AskerOf(workload))) {
    return false;
  }
  const Outcome& outcome = outcomes[found->second];
  return outcome.promises.empty() &&
         (outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kQueueLimitReached ||
          outcome.code == Code::kNonPreemptibleOverQuota ||
          outcome.code == Code::kTopologyInfeasible || outcome.code == Code::kMissingObject ||
          outcome.code == Code::kInvalidRequest);
}

bool Cycle::Known(const Failures& failures, const StepKind& kind, size_t pods) const {
  const auto it = failures.find(kind);
  return it != failures.end() && static_cast<int64_t>(pods) >= it->second;
}

void Cycle::WriteViolation(queues::QueueId leaf, const state::Workload& workload,
                           const GangStep& step, const model::Resources& request,
                           const queues::LimitViolation& violation) {
  Outcome& outcome = OutcomeOf(workload, leaf);
  if (outcome.code != Code::kNone) {
    outcome.whole_demand = false;
    return;
  }
  outcome.code = CodeOf(violation);
  outcome.violation = violation;
  outcome.step = step;
  outcome.step_request = request;
}

bool Cycle::HeldByLimit(queues::QueueId leaf, const state::Workload& workload, const GangStep& step,
                        const model::Resources& request) {
  const auto violation =
      queues::CheckLimits(p_.tree, p_.books.ledger(), leaf, request, workload.preemptible);
  if (!violation.has_value()) return false;
  WriteViolation(leaf, workload, step, request, *violation);
  return true;
}

void Cycle::Consider(queues::QueueId leaf, const state::Workload& workload) {
  GangStep step = NextStep(p_.state, workload);
  if (step.pods.empty() || InBackoff(step)) return;
  model::Resources request = ChargeOf(step.pods);
  if (HeldByLimit(leaf, workload, step, request)) return;
  const state::PodId first = step.pods.front();
  RecordLack(leaf, workload, std::move(step), std::move(request), first,
             Code::kInsufficientCapacity, "");
}

Outcome& Cycle::RecordLack(queues::QueueId leaf, const state::Workload& workload, GangStep step,
                           model::Resources request, state::PodId failed, Code code,
                           std::string subject) {
  Outcome& outcome = OutcomeOf(workload, leaf);
  if (outcome.code == Code::kNone) {
    outcome.code = code;
    outcome.subject = std::move(subject);
    // No node helps a pod whose claims are not in order.
    const model::PodSpec& spec = *p_.state.class_of(failed).spec;
    if (code == Code::kInsufficientCapacity && !spec.claim_problem.empty()) {
      const bool missing = !spec.missing_claim.empty();
      outcome.code = missing ? Code::kMissingObject : Code::kInvalidRequest;
      outcome.subject = missing ? spec.missing_claim : spec.claim_problem;
    }
  }
  outcome.bound_to_topology = BoundToTopology(workload);
  outcome.failed_pod = failed;
  outcome.step = std::move(step);
  outcome.step_request = std::move(request);
  return outcome;
}

void Cycle::Take(queues::QueueId leaf, const state::Workload& workload,
                 const std::vector<state::Transaction::Operation>& operations) {
  std::vector<state::PodId> promised;
  ++steps_;
  for (const state::Transaction::Operation& operation : operations) {
    if (operation.kind == state::Transaction::OperationKind::kAllocate) {
      p_.state.SetStartedAt(operation.pod, now_);
      bindings.push_back({operation.pod, operation.node, steps_});
      if (searched_) fresh_.insert(operation.pod);
    } else {
      promised.push_back(operation.pod);
    }
  }
  if (!promised.empty()) RecordPromises(workload, leaf, promised, /*victims_chosen=*/false);
}

bool Cycle::Serve(queues::QueueId leaf, const state::Workload& workload) {
  NextJob& next = next_[leaf];
  GangStep step = std::move(next.step);
  model::Resources request = std::move(next.request);
  next = {};
  if (step.pods.empty() || InBackoff(step)) return false;
  if (HeldByLimit(leaf, workload, step, request)) return false;
  bool promised = false;
  if (HeldByLending(leaf, workload, step, request, promised)) return promised;
  if (HeldByReservation(leaf, workload, step, request)) return false;
  const StepKind kind = KindOf(p_.state, workload, step);
  Placement placement;
  state::WorkloadId held = state::kNoId;
  const bool ordinary =
      p_.reservations.any() && p_.reservations.IsOrdinary(p_.reservations.AskerOf(workload));
  const auto kept = ordinary ? failed_kept_.find(kind) : failed_kept_.end();
  if (kept != failed_kept_.end() && p_.state.workload(kept->second.second).Active() == 0 &&
      static_cast<int64_t>(step.pods.size()) >= kept->second.first) {
    held = kept->second.second;
  } else if (!Known(failed_, kind, step.pods.size())) {
    state::Transaction txn(p_.state);
    // Behind its own promise a workload starts nothing: its pods go in order.
    const auto mode =
        workload.Count(PodStatus::kPipelined) > 0 ? Placer::Mode::kPromise : Placer::Mode::kStart;
    std::optional<queues::LimitViolation> broken;
    placement = PlaceInModels(txn, leaf, workload, step, mode, nullptr, broken);
    if (placement.placed) {
      Take(leaf, workload, txn.Commit());
      return true;
    }
    if (broken.has_value()) {
      WriteViolation(leaf, workload, step, request, *broken);
      return false;
    }
    const auto count = static_cast<int64_t>(step.pods.size());
    if (placement.kept_for == state::kNoId) {
      auto [it, added] = failed_.try_emplace(kind, count);
      if (!added) it->second = std::min(it->second, count);
    } else {
      held = placement.kept_for;
      if (ordinary) failed_kept_[kind] = {count, held};
    }
  }
  const Code code = placement.topology_invalid      ? Code::kMissingObject
                    : placement.topology_infeasible ? Code::kTopologyInfeasible
                                                    : Code::kInsufficientCapacity;
  const state::PodId failed =
      placement.failed != state::kNoId ? placement.failed : step.pods.front();
  Outcome& outcome = RecordLack(leaf, workload, std::move(step), std::move(request), failed, code,
                                std::move(placement.topology_reason));
  if (held != state::kNoId) outcome.details.push_back(p_.reservations.DescribeHold(held));
  return false;
}

bool Cycle::HeldByReservation(queues::QueueId leaf, const state::Workload& workload, GangStep& step,
                              model::Resources& request) {
  if (!p_.reservations.any()) return false;
  const state::WorkloadId first =
      p_.reservations.BehindOf(p_.reservations.AskerOf(workload), request);
  if (first == state::kNoId) return false;
  const state::PodId failed = step.pods.front();
  Outcome& outcome = RecordLack(leaf, workload, std::move(step), std::move(request), failed,
                                Code::kInsufficientCapacity, "");
  outcome.behind = true;
  outcome.details.push_back(p_.reservations.DescribeHold(first));
  return true;
}

void Cycle::SettleReservations() {
  if (!p_.options.reservations.on) return;
  std::vector<Reservations::Lack> lacks;
  for (const Outcome& outcome : outcomes) {
    if (outcome.leaf == PendingIndex::kNoQueue || outcome.step.pods.empty()) continue;
    Reservations::Lack lack;
    lack.workload = outcome.workload;
    lack.leaf = outcome.leaf;
    lack.pods = &outcome.step.pods;
    lack.request = &outcome.step_request;
    lack.only_room = outcome.code == Code::kInsufficientCapacity && outcome.promises.empty() &&
                     !outcome.behind && outcome.keeper.empty();
    lack.may_reserve = !outcome.bound_to_topology && !outcome.step.extra;
    if (outcome.code == Code::kWaitingForVictims) {
      for (const Waiting::PodPromise& promise : outcome.promises) {
        lack.promised.emplace_back(promise.pod, promise.node);
      }
    }
    lacks.push_back(std::move(lack));
  }
  p_.reservations.Settle(lacks);
  for (const state::WorkloadId owner : p_.reservations.Owners()) {
    outcomes[index_.at(owner)].details.push_back(p_.reservations.Describe(owner));
  }
}

// Too far back in its queue to be looked at in this cycle.
void Cycle::RefuseForDepth(queues::QueueId leaf, const state::Workload& workload) {
  Outcome& outcome = OutcomeOf(workload, leaf);
  outcome.code = Code::kInsufficientCapacity;
  outcome.tried = false;
  outcome.details.push_back(absl::StrCat("not looked at: beyond the first ",
                                         p_.options.allocate_depth,
                                         " workloads of its queue (queueDepth.allocate)"));
}

void Cycle::Allocate() {
  ServiceWalk walk(p_.pending);
  std::map<queues::QueueId, int64_t> served;
  auto next_job = [&](queues::QueueId leaf) -> const model::Resources* {
    while (true) {
      const state::WorkloadId id = walk.Peek(leaf);
      if (id == state::kNoId) return nullptr;
      const state::Workload& workload = p_.state.workload(id);
      // A workload that was served before in this cycle has passed.
      if ((index_.contains(id) || MayStart(leaf, workload)) && PrepareNext(leaf, workload)) {
        return &next_[leaf].request;
      }
      walk.Pop(leaf);
      if (fold_) outcomes[index_.at(id)].rest = walk.LeaveOutRest(leaf, /*in_turn=*/false);
    }
  };
  queues::QueueOrderIterator order(p_.tree, p_.books.ledger(), p_.shares, next_job,
                                   {.cluster_total = p_.state.total_for_queues()});
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    const state::WorkloadId id = walk.Peek(*leaf);
    if (walk.IsLeftOut(*leaf)) {
      walk.Pop(*leaf);
      order.Changed(*leaf);
      continue;
    }
    walk.Pop(*leaf);
    if (p_.options.allocate_depth != model::kUnlimited && !index_.contains(id) &&
        ++served[*leaf] > p_.options.allocate_depth) {
      RefuseForDepth(*leaf, p_.state.workload(id));
      order.Changed(*leaf);
      continue;
    }
    const state::Workload& workload = p_.state.workload(id);
    if (p_.options.allocate && Serve(*leaf, workload)) {
      if (ReadinessOf(p_.state, workload) == Readiness::kReady) {
        walk.PutBack(*leaf, MakeServiceKey(workload));
      }
    } else if (!p_.options.allocate) {
      Consider(*leaf, workload);
    } else if (HoldsItsCrowd(workload)) {
      outcomes[index_.at(id)].rest = walk.LeaveOutRest(*leaf);
    }
    order.Changed(*leaf);
  }
}

}  // namespace fairlead::engine
