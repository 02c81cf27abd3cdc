#include "scheduler/engine/actions/pending_pass.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "queues/job_order.h"
#include "scheduler/state/left_out_devices.h"

namespace fairlead::engine {

using state::PodStatus;
using verdict::Code;

namespace {

// A claim that one pod at a time may use, and that several pods of the step need; or "". Such a
// step never fits, whatever nodes there are. O(pods)
absl::string_view ContendedClaim(const state::ClusterState& state, const TasksToAllocate& step) {
  if (step.pods.size() < 2) return "";
  absl::flat_hash_set<absl::string_view> needed;
  for (const state::PodId pod : step.pods) {
    for (const model::SharedVolumeNeed& need : state.class_of(pod).spec->volume_needs->shared) {
      if (need.once && !needed.insert(need.claim).second) return need.claim;
    }
  }
  return "";
}

// What holds back its first gated pod.
std::string GateOf(const state::ClusterState& state, const state::Workload& workload) {
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state.pod(id);
    if (pod.status == PodStatus::kGated) return pod.details->gate;
  }
  return "";
}

}  // namespace

void PendingPass::Run() {
  RefuseUnservable();
  ServeFirst();
  JobIterator walk(in_.pending);
  in_.walk_budget.Begin(in_.options.max_walk_work, in_.placer.work());
  queues::QueueOrderIterator order(in_.tree, in_.tracker.ledger(), in_.shares,
                                   [&](queues::QueueId leaf) { return PeekNext(leaf, walk); },
                                   {.cluster_total = in_.state.total_for_queues()});
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    if (walk.IsLeftOut(*leaf)) {
      PassLeftOut(*leaf, walk);
    } else {
      const state::WorkloadId id = walk.Peek(*leaf);
      walk.Pop(*leaf);
      TakeTurn(*leaf, in_.state.workload(id), walk);
    }
    order.Changed(*leaf);
  }
  if (HasDepth()) {
    for (const auto& [leaf, count] : evaluated_) {
      if (count < in_.options.allocate_depth) PassLeftOut(leaf, walk);
    }
  }
  in_.walk_budget.End();
  if (in_.walk_budget.spent()) c_.decisions.WakeAt(in_.now);
  NameLimitsOfUntried();
  Finish();
}

void PendingPass::TakeTurn(queues::QueueId leaf, const state::Workload& workload,
                           JobIterator& walk) {
  if (!in_.walk_budget.TakeTurn(in_.placer.work())) {
    PutOff(leaf, workload, walk);
    return;
  }
  const bool counts = HasDepth() && !c_.outcomes.Contains(workload.id);
  if (counts && ++evaluated_[leaf] > in_.options.allocate_depth) {
    RefuseForDepth(leaf, workload).rest = walk.LeaveOutRest(leaf);
    return;
  }
  NextJob& next = next_[leaf];
  ListStep(workload, next);
  switch (Visit(leaf, workload, next)) {
    case Turn::kAgain:
      if (ReadinessOf(in_.state, workload) == Readiness::kReady) {
        walk.Requeue(leaf, MakeQueueOrderKey(workload));
      }
      break;
    case Turn::kHeldAll:
      c_.outcomes.At(workload.id).rest = walk.LeaveOutRest(leaf);
      break;
    case Turn::kDone:
      break;
  }
  if (counts) RefuseLeftOutForDepth(leaf, walk);
}

void PendingPass::PassLeftOut(queues::QueueId leaf, JobIterator& walk) {
  if (HasDepth()) {
    int64_t& evaluated = evaluated_[leaf];
    const int64_t left = in_.options.allocate_depth - evaluated;
    if (left > 0) {
      evaluated += walk.PassLeftOut(leaf, left);
      RefuseLeftOutForDepth(leaf, walk);
      return;
    }
  }
  walk.PassLeftOut(leaf);
}

void PendingPass::RefuseLeftOutForDepth(queues::QueueId leaf, JobIterator& walk) {
  if (evaluated_[leaf] != in_.options.allocate_depth) return;
  for (const JobIterator::LeftOut& left : walk.NotPassed(leaf)) {
    MemberRange& evaluated = c_.outcomes.At(left.behind).rest;
    evaluated.end = left.rest.next;
    evaluated.count -= left.rest.count;
    if (evaluated.empty()) evaluated = {};
    Outcome& outcome = RefuseForDepth(leaf, in_.state.workload(left.rest.next->workload));
    outcome.rest = left.rest.Behind();
    c_.outcomes.MarkLate(outcome);
  }
}

void PendingPass::ListStep(const state::Workload& workload, NextJob& next) const {
  if (std::exchange(next.listed, true)) return;
  if (next.only_pod != state::kNoId) {
    StepOfOnePod(next.only_pod, next.step);
  } else {
    NextStep(in_.state, workload, next.step);
  }
}

void PendingPass::RefuseUnservable() {
  for (const auto& [queue, leaf] : in_.pending.leaves()) {
    Code code = Code::kNone;
    std::string subject;
    if (queue == PendingIndex::kNoQueue || !in_.tree.Exists(queue)) {
      code = Code::kQueueNotFound;
    } else if (in_.tree.Problem(queue).has_value()) {
      code = Code::kQueueNotFound;
      subject = *in_.tree.Problem(queue);
    } else if (!in_.tree.IsLeaf(queue)) {
      code = Code::kQueueNotLeaf;
    }
    if (code == Code::kNone) continue;
    for (const EquivalenceClass* equivalence_class : leaf.equivalence_classes()) {
      const state::Workload& workload =
          in_.state.workload(equivalence_class->members.begin()->workload);
      Outcome& outcome = c_.outcomes.Of(workload, queue);
      outcome.code = code;
      outcome.subject = subject;
      if (!workload.details->invalid.empty()) {
        outcome.code = Code::kInvalidRequest;
        outcome.subject = workload.details->invalid;
      }
      outcome.rest = BehindFirst(*equivalence_class);
    }
  }
}

const model::Resources* PendingPass::PeekNext(queues::QueueId leaf, JobIterator& walk) {
  while (true) {
    const state::WorkloadId id = walk.Peek(leaf);
    if (id == state::kNoId) return nullptr;
    const auto [equivalents, key] = walk.ClassOfPeeked(leaf);
    if (equivalents != nullptr) {
      const auto known = request_of_class_.find(equivalents->id);
      if (known != request_of_class_.end()) {
        NextJob& next = next_[leaf];
        next.request = known->second;
        next.listed = false;
        next.only_pod = equivalents->one_pod ? key->first_pod : state::PodId{state::kNoId};
        return &known->second;
      }
    }
    const state::Workload& workload = in_.state.workload(id);
    if (served_.contains(id) && ReadinessOf(in_.state, workload) != Readiness::kReady) {
      walk.Pop(leaf);
      continue;
    }
    // A workload that had a turn in this cycle has passed.
    if ((c_.outcomes.Contains(id) || MayStart(leaf, workload)) && PrepareNext(leaf, workload)) {
      const model::Resources& request = next_[leaf].request;
      if (equivalents != nullptr) request_of_class_.emplace(equivalents->id, request);
      return &request;
    }
    walk.Pop(leaf);
    c_.outcomes.At(id).rest = walk.LeaveOutRest(leaf, /*in_turn=*/false);
  }
}

bool PendingPass::MayStart(queues::QueueId leaf, const state::Workload& workload) {
  Code code = Code::kNone;
  std::string subject;
  if (!workload.plain && !workload.details->invalid.empty()) {
    code = Code::kInvalidRequest;
    subject = workload.details->invalid;
  } else if (workload.is_group && workload.group == nullptr) {
    code = Code::kMissingObject;
    subject = absl::StrCat("PodGroup ", workload.ns, "/", workload.name);
  } else {
    switch (ReadinessOf(in_.state, workload)) {
      case Readiness::kReady:
        if (!workload.GaveUp()) return true;
        RefuseForBackoff(leaf, workload);
        return false;
      case Readiness::kNothingWaits:
      case Readiness::kGated:
        code = Code::kGated;
        subject = GateOf(in_.state, workload);
        break;
      case Readiness::kIncomplete:
        code = Code::kGangIncomplete;
        break;
    }
    // A pod that cannot be understood is the first thing to correct.
    for (state::PodId id : workload.pods) {
      const state::PodRecord& pod = in_.state.pod(id);
      if (pod.status != PodStatus::kPending || pod.details->invalid.empty()) continue;
      code = Code::kInvalidRequest;
      subject = workload.is_group ? absl::StrCat("pod ", pod.name, ": ", pod.details->invalid)
                                  : pod.details->invalid;
      break;
    }
  }
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  outcome.code = code;
  outcome.subject = subject;
  return false;
}

bool PendingPass::PrepareNext(queues::QueueId leaf, const state::Workload& workload) {
  NextJob& next = next_[leaf];
  NextStep(in_.state, workload, next.step);
  next.listed = true;
  next.only_pod = state::kNoId;
  state::PodClassId last = state::kNoId;
  for (const state::PodId id : next.step.pods) {
    const state::PodRecord& pod = in_.state.pod(id);
    if (pod.pod_class == last) continue;
    last = pod.pod_class;
    const auto [known, added] = refused_everywhere_.try_emplace(last);
    if (added) known->second = in_.framework.RefusesEverywhere(in_.state.pod_class(last));
    if (known->second.empty()) continue;
    Outcome& outcome = c_.outcomes.Of(workload, leaf);
    if (outcome.code != Code::kNone) return false;  // the outcome of an earlier step stands
    RecordRefusal(workload, pod, known->second, outcome);
    return false;
  }
  if (const absl::string_view claim = ContendedClaim(in_.state, next.step); !claim.empty()) {
    Outcome& outcome = c_.outcomes.Of(workload, leaf);
    if (outcome.code != Code::kNone) return false;
    outcome.code = Code::kInvalidRequest;
    outcome.subject = absl::StrCat("spec.volumes: several of its pods use claim ", claim,
                                   ", which is ReadWriteOncePod, at the same time");
    return false;
  }
  next.request = c_.ChargeOf(next.step.pods);
  return true;
}

void PendingPass::RecordRefusal(const state::Workload& workload, const state::PodRecord& pod,
                                const std::string& why, Outcome& outcome) const {
  const model::VolumeNeeds& volumes = *in_.state.pod_class(pod.pod_class).spec->volume_needs;
  // Plugins of volumes end with the fault: `why` may be another plugin's.
  if (!volumes.missing.empty() && absl::EndsWith(why, volumes.fault)) {
    outcome.code = Code::kMissingObject;
    outcome.subject = volumes.missing;
    return;
  }
  outcome.code = Code::kInvalidRequest;
  outcome.subject = workload.is_group ? absl::StrCat("pod ", pod.name, ": ", why) : why;
}

void PendingPass::RefuseForBackoff(queues::QueueId leaf, const state::Workload& workload) {
  const model::FailedAttempt& attempt = *workload.details->failed_attempt;
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  outcome.code = Code::kSchedulingBackoff;
  outcome.subject = attempt.node_pool;
  if (attempt.reason.empty()) return;
  outcome.details.push_back(absl::StrCat("the attempt failed with ", attempt.reason,
                                         attempt.message.empty() ? "" : ": ", attempt.message));
}

Outcome& PendingPass::RefuseForDepth(queues::QueueId leaf, const state::Workload& workload) {
  untried_.push_back(workload.id);
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  outcome.code = Code::kInsufficientCapacity;
  outcome.tried = false;
  outcome.details.push_back(absl::StrCat("not evaluated: beyond the first ",
                                         in_.options.allocate_depth,
                                         " workloads of its queue (queueDepth.allocate)"));
  return outcome;
}

void PendingPass::PutOff(queues::QueueId leaf, const state::Workload& workload, JobIterator& walk) {
  // What this cycle has found out about a workload of several steps stands.
  if (c_.outcomes.Contains(workload.id)) return;
  untried_.push_back(workload.id);
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  outcome.code = Code::kGated;
  outcome.subject = verdict::HeldByPlugin(
      "QueueOrder",
      "workloads before it take up the decision, and its turn comes in one of the next");
  outcome.awaits = true;
  outcome.tried = false;
  outcome.rest = walk.LeaveOutRest(leaf);
}

void PendingPass::NameLimitsOfUntried() {
  for (const state::WorkloadId id : untried_) {
    const state::Workload& workload = in_.state.workload(id);
    Outcome& outcome = c_.outcomes.At(id);
    TasksToAllocate step;
    NextStep(in_.state, workload, step);
    model::Resources request = c_.ChargeOf(step.pods);
    const auto violation = queues::CheckLimits(in_.tree, in_.tracker.ledger(), outcome.leaf,
                                               request, workload.preemptible);
    if (!violation.has_value()) continue;
    outcome.code = CodeOf(*violation);
    outcome.violation = violation;
    outcome.awaits = false;
    outcome.subject.clear();
    outcome.step = std::move(step);
    outcome.step_request = std::move(request);
    outcome.details.clear();
  }
}

bool PendingPass::HeldByLimit(queues::QueueId leaf, const state::Workload& workload,
                              const TasksToAllocate& step, const model::Resources& request) {
  const auto violation =
      queues::CheckLimits(in_.tree, in_.tracker.ledger(), leaf, request, workload.preemptible);
  if (!violation.has_value()) return false;
  RecordViolation(leaf, workload, step, request, *violation);
  return true;
}

void PendingPass::RecordViolation(queues::QueueId leaf, const state::Workload& workload,
                                  const TasksToAllocate& step, const model::Resources& request,
                                  const queues::LimitViolation& violation) {
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  if (outcome.code != Code::kNone) {
    outcome.whole_demand = false;
    return;
  }
  outcome.code = CodeOf(violation);
  outcome.violation = violation;
  outcome.step = step;
  outcome.step_request = request;
}

Outcome& PendingPass::RecordUnmet(queues::QueueId leaf, const state::Workload& workload,
                                  TasksToAllocate step, model::Resources request,
                                  state::PodId failed, Code code, std::string subject) {
  Outcome& outcome = c_.outcomes.Of(workload, leaf);
  if (outcome.code == Code::kNone) {
    outcome.code = code;
    outcome.subject = std::move(subject);
    // No node helps a pod whose claims are not in order.
    const model::PodSpec& spec = *in_.state.class_of(failed).spec;
    if (code == Code::kInsufficientCapacity && !spec.claim_problem.empty()) {
      const bool missing = !spec.missing_claim.empty();
      outcome.code = missing ? Code::kMissingObject : Code::kInvalidRequest;
      outcome.subject = missing ? spec.missing_claim : spec.claim_problem;
    }
    if (code == Code::kInsufficientCapacity && outcome.code == code) {
      const std::string left_out = state::LeftOutEverywhere(in_.state.devices(), spec.requests);
      if (!left_out.empty()) {
        outcome.code = Code::kInvalidRequest;
        outcome.subject = left_out;
      }
    }
    // Nor one that extenders admit to no node: they are asked again, about all nodes.
    const model::NodeAnswers& answers = spec.node_answers;
    if (code == Code::kInsufficientCapacity && !answers.IsEmpty() && !answers.AdmitsAny()) {
      const state::PodRecord& pod = in_.state.pod(failed);
      outcome.code = Code::kBindingRefused;
      outcome.subject = absl::StrCat("pod ", pod.ns, "/", pod.name,
                                     ": the scheduler extenders admit it to no node (",
                                     model::RefusalsOf(answers), ")");
    }
    // A node that was not judged yet may take it: nothing is evicted for it, and nothing bought.
    if (outcome.code == Code::kInsufficientCapacity) {
      const framework::Framework::Awaited awaited =
          in_.framework.Awaits(in_.state.class_of(failed));
      if (!awaited.what.empty()) {
        outcome.code = Code::kGated;
        outcome.subject = verdict::HeldByPlugin(awaited.plugin, awaited.what);
        outcome.awaits = true;
      }
    }
  }
  outcome.bound_to_topology = BoundToTopology(workload);
  outcome.failed_pod = failed;
  outcome.step = std::move(step);
  outcome.step_request = std::move(request);
  return outcome;
}

}  // namespace fairlead::engine
