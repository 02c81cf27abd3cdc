#include "scheduler/engine/cycle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::engine {

using state::PodStatus;
using verdict::Code;

void Cycle::Run() {
  Unservable();
  Allocate();
  if (p_.options.reclaim) Evict(/*reclaim=*/true);
  if (p_.options.preempt) Evict(/*reclaim=*/false);
  Demand();
  std::map<queues::QueueId, int64_t> positions;
  for (Outcome& outcome : outcomes) outcome.position = ++positions[outcome.leaf];
  TakeBack();
}

Outcome& Cycle::OutcomeOf(const state::Workload& workload, queues::QueueId leaf) {
  auto [it, added] = index_.try_emplace(workload.id, outcomes.size());
  if (added) {
    outcomes.emplace_back();
    outcomes.back().workload = workload.id;
    outcomes.back().leaf = leaf;
  }
  return outcomes[it->second];
}

// Workloads of queues that do not exist, are broken or are not leaves never reach the order of service.
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
    for (const ServiceKey& key : leaf) {
      const state::Workload& workload = p_.state.workload(key.workload);
      Outcome& outcome = OutcomeOf(workload, queue);
      outcome.code = code;
      outcome.subject = subject;
      if (!workload.invalid.empty()) {
        outcome.code = Code::kInvalidRequest;
        outcome.subject = workload.invalid;
      }
    }
  }
}

bool Cycle::MayStart(queues::QueueId leaf, const state::Workload& workload) {
  Code code = Code::kNone;
  std::string subject;
  const auto pending = static_cast<int64_t>(workload.Count(PodStatus::kPending));
  const auto gated = static_cast<int64_t>(workload.Count(PodStatus::kGated));
  const auto active = static_cast<int64_t>(workload.Active());
  const int64_t minimum = GangMinimum(workload);
  if (!workload.invalid.empty()) {
    code = Code::kInvalidRequest;
    subject = workload.invalid;
  } else if (workload.is_group && workload.group == nullptr) {
    code = Code::kMissingObject;
    subject = absl::StrCat("PodGroup ", workload.ns, "/", workload.name);
  } else if (workload.group != nullptr && !workload.group->topology.required_level.empty()) {
    code = Code::kTopologyInfeasible;
    subject = absl::StrCat("topology ", workload.group->topology.topology,
                           ": required levels are not placed by this version");
  } else if (pending == 0) {
    code = Code::kGated;
  } else if (active < minimum && active + pending < minimum) {
    code = active + pending + gated >= minimum ? Code::kGated : Code::kGangIncomplete;
  }
  if (code == Code::kNone) {
    for (state::PodId id : workload.pods) {
      const state::PodRecord& pod = p_.state.pod(id);
      if (pod.status != PodStatus::kPending || pod.invalid.empty()) continue;
      code = Code::kInvalidRequest;
      subject = workload.is_group ? absl::StrCat("pod ", pod.name, ": ", pod.invalid) : pod.invalid;
      break;
    }
  }
  if (code == Code::kNone) return true;
  Outcome& outcome = OutcomeOf(workload, leaf);
  outcome.code = code;
  outcome.subject = subject;
  return false;
}

Cycle::Step Cycle::NextStep(const state::Workload& workload) const {
  Step step;
  const int64_t missing = GangMinimum(workload) - static_cast<int64_t>(workload.Active());
  const auto wanted = static_cast<size_t>(std::max<int64_t>(1, missing));
  for (state::PodId id : workload.pods) {
    if (p_.state.pod(id).status != PodStatus::kPending) continue;
    step.pods.push_back(id);
    step.request += p_.state.class_of(id).charge;
    if (step.pods.size() == wanted) break;
  }
  return step;
}

bool Cycle::InBackoff(const Step& step) {
  if (p_.backoff.empty()) return false;
  bool waits = false;
  for (state::PodId pod : step.pods) {
    auto it = p_.backoff.find(pod);
    if (it == p_.backoff.end() || it->second.first <= now_) continue;
    wake_at = std::min(wake_at, it->second.first);
    waits = true;
  }
  return waits;
}

bool Cycle::Known(const Failures& failures, const Step& step) const {
  const state::PodClassId first = p_.state.pod(step.pods.front()).pod_class;
  auto it = failures.find(first);
  if (it == failures.end()) return false;
  int64_t equal = 0;
  for (state::PodId pod : step.pods) {
    if (p_.state.pod(pod).pod_class == first) ++equal;
  }
  return equal >= it->second;
}

void Cycle::Remember(Failures& failures, const Step& step) const {
  // A mixed gang proves nothing about one of its classes alone.
  const state::PodClassId first = p_.state.pod(step.pods.front()).pod_class;
  for (state::PodId pod : step.pods) {
    if (p_.state.pod(pod).pod_class != first) return;
  }
  const auto count = static_cast<int64_t>(step.pods.size());
  auto [it, added] = failures.try_emplace(first, count);
  if (!added) it->second = std::min(it->second, count);
}

void Cycle::RecordPromises(const state::Workload& workload, queues::QueueId leaf, const Step& step,
                           bool victims_chosen) {
  Outcome& outcome = OutcomeOf(workload, leaf);
  bool here = victims_chosen;
  for (state::PodId pod : step.pods) {
    const state::NodeId node = p_.state.pod(pod).node;
    promised_.push_back(pod);
    outcome.promises.push_back({pod, node});
    const state::NodeInfo& info = p_.state.node(node);
    if (info.kind == state::NodeKind::kReal && info.usable && !info.releasing.IsZero()) here = true;
  }
  // A gang that waits for both shows the nodes: they take longer.
  bool ordered = false;
  for (const Waiting::PodPromise& promise : outcome.promises) {
    const state::NodeInfo& info = p_.state.node(promise.node);
    ordered = ordered || info.kind != state::NodeKind::kReal || !info.usable;
  }
  if (outcome.code == Code::kNone || outcome.code == Code::kInsufficientCapacity ||
      outcome.code == Code::kWaitingForVictims) {
    outcome.code = ordered ? Code::kNodesRequested
                   : here  ? Code::kWaitingForVictims
                           : Code::kInsufficientCapacity;
  }
}

bool Cycle::Serve(queues::QueueId leaf, const state::Workload& workload) {
  const Step step = NextStep(workload);
  if (step.pods.empty() || InBackoff(step)) return false;
  if (const auto violation = queues::CheckLimits(p_.tree, p_.books.ledger(), leaf, step.request,
                                                 workload.preemptible)) {
    Outcome& outcome = OutcomeOf(workload, leaf);
    if (outcome.code != Code::kNone) {
      outcome.whole_demand = false;
      return false;
    }
    outcome.code = violation->kind == queues::LimitKind::kLimit ? Code::kQueueLimitReached
                                                                : Code::kNonPreemptibleOverQuota;
    outcome.violation = violation;
    outcome.step = step.pods;
    outcome.step_request = step.request;
    return false;
  }
  state::Transaction txn(p_.state);
  state::PodId failed = step.pods.front();
  // Behind its own promise a workload places nothing: its pods go in order.
  const bool promised_before = workload.Count(PodStatus::kPipelined) > 0;
  if (!promised_before && !Known(failed_now_, step)) {
    if (p_.placer.AllocateAll(txn, step.pods, &failed)) {
      for (const auto& operation : txn.Commit()) {
        p_.state.SetStartedAt(operation.pod, now_);
        bindings.push_back({operation.pod, operation.node});
      }
      return true;
    }
    Remember(failed_now_, step);
  }
  if (!Known(failed_future_, step)) {
    if (p_.placer.PromiseAll(txn, step.pods)) {
      txn.Commit();
      RecordPromises(workload, leaf, step, /*victims_chosen=*/false);
      return true;
    }
    Remember(failed_future_, step);
  }
  Outcome& outcome = OutcomeOf(workload, leaf);
  if (outcome.code == Code::kNone) outcome.code = Code::kInsufficientCapacity;
  outcome.step = step.pods;
  outcome.step_request = step.request;
  outcome.failed_pod = failed;
  return false;
}

void Cycle::Allocate() {
  ServiceWalk walk(p_.pending);
  auto next_job = [&](queues::QueueId leaf) -> const model::Resources* {
    while (true) {
      const state::WorkloadId id = walk.Peek(leaf);
      if (id == state::kNoId) return nullptr;
      const state::Workload& workload = p_.state.workload(id);
      // A workload that was served before in this cycle has passed.
      if (index_.contains(id) || MayStart(leaf, workload)) {
        model::Resources& request = next_request_[leaf];
        request = NextStep(workload).request;
        return &request;
      }
      walk.Pop(leaf);
    }
  };
  queues::QueueOrderIterator order(p_.tree, p_.books.ledger(), p_.shares, next_job,
                                   {.cluster_total = p_.state.total_for_queues()});
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    const state::WorkloadId id = walk.Peek(*leaf);
    walk.Pop(*leaf);
    const state::Workload& workload = p_.state.workload(id);
    if (Serve(*leaf, workload) && workload.Count(PodStatus::kPending) > 0) {
      walk.PutBack(*leaf, MakeServiceKey(workload));
    }
    order.Changed(*leaf);
  }
}

// True if the workload is too young to make others give way (preemptionDelay).
bool Cycle::DelaysEviction(Outcome& outcome, const state::Workload& workload) {
  if (workload.group == nullptr || !workload.group->preemption_delay.has_value()) return false;
  const absl::Time until = workload.creation + *workload.group->preemption_delay;
  if (until <= now_) return false;
  outcome.until = until;
  wake_at = std::min(wake_at, until);
  return true;
}

void Cycle::Evict(bool reclaim) {
  // Equal workloads of one queue fail alike; each is searched for once a cycle.
  struct Failed {
    int32_t priority;
    int64_t count;
  };
  std::map<std::pair<queues::QueueId, state::PodClassId>, Failed> failed;
  const queues::QueueLedger ledger = p_.books.ledger();
  for (Outcome& outcome : outcomes) {
    const bool by_capacity =
        outcome.code == Code::kInsufficientCapacity && outcome.promises.empty();
    if (!by_capacity || outcome.step.empty()) continue;
    const state::Workload& workload = p_.state.workload(outcome.workload);
    if (DelaysEviction(outcome, workload)) continue;
    const auto count = static_cast<int64_t>(outcome.step.size());
    const auto key = std::make_pair(outcome.leaf, p_.state.pod(outcome.step.front()).pod_class);
    auto known = failed.find(key);
    if (known != failed.end() && count >= known->second.count &&
        workload.priority <= known->second.priority) {
      continue;
    }
    if (queues::CheckLimits(p_.tree, p_.books.ledger(), outcome.leaf, outcome.step_request,
                            workload.preemptible)
            .has_value()) {
      continue;  // others were served meanwhile; the demand pass says which limit
    }
    const SearchContext context{p_.tree,
                                reclaim ? ledger : p_.books.ledger(),
                                p_.shares,
                                now_,
                                p_.options.max_victims_per_search,
                                static_cast<uint64_t>(p_.options.max_search_work)};
    const SearchStep step{&workload, outcome.leaf, outcome.step, outcome.step_request};
    state::Transaction txn(p_.state);
    SearchOutcome found =
        reclaim ? p_.search.Reclaim(txn, context, step) : p_.search.Preempt(txn, context, step);
    if (!found.found) {
      for (std::string& detail : found.details) outcome.details.push_back(std::move(detail));
      failed[key] = {workload.priority, count};
      continue;
    }
    txn.Commit();
    const std::string name = model::Key(workload.ns, workload.name);
    for (state::PodId victim : found.victims) {
      evictions.push_back(
          {victim, reclaim ? "reclaim" : "preempt", name,
           reclaim ? absl::StrCat("Evicted for workload ", name, " of queue ", workload.queue,
                                  ", which is below its fair share")
                   : absl::StrCat("Evicted for workload ", name, " of higher priority ",
                                  workload.priority, " in the same queue")});
    }
    const Step placed{outcome.step, outcome.step_request};
    RecordPromises(workload, outcome.leaf, placed, /*victims_chosen=*/true);
  }
}

// Fills in what the hook may buy for one workload: its blocked step, then its extras one at a time, as
// long as every queue above has room for them.
void Cycle::DemandFor(Outcome& outcome) {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  std::vector<state::PodId> pods = outcome.step;
  model::Resources request = outcome.step_request;
  size_t next = 0;
  while (!pods.empty()) {
    if (const auto violation = queues::CheckLimits(p_.tree, p_.books.ledger(), outcome.leaf, request,
                                                   workload.preemptible)) {
      if (outcome.demanded.empty() && outcome.promises.empty()) {
        outcome.code = violation->kind == queues::LimitKind::kLimit
                           ? Code::kQueueLimitReached
                           : Code::kNonPreemptibleOverQuota;
        outcome.violation = violation;
      } else {
        outcome.whole_demand = false;
      }
      return;
    }
    p_.books.mutable_ledger().Charge(outcome.leaf, request, workload.preemptible);
    demand_charges_.push_back({outcome.leaf, request, workload.preemptible});
    outcome.demanded.insert(outcome.demanded.end(), pods.begin(), pods.end());
    pods.clear();
    for (; next < workload.pods.size(); ++next) {
      const state::PodId id = workload.pods[next];
      if (p_.state.pod(id).status != PodStatus::kPending ||
          std::find(outcome.step.begin(), outcome.step.end(), id) != outcome.step.end()) {
        continue;
      }
      pods = {id};
      request = p_.state.class_of(id).charge;
      ++next;
      break;
    }
  }
}

void Cycle::Demand() {
  for (Outcome& outcome : outcomes) {
    if (outcome.step.empty()) continue;
    if (outcome.code != Code::kInsufficientCapacity && outcome.code != Code::kNodesRequested &&
        outcome.code != Code::kWaitingForVictims) {
      continue;
    }
    // The step of a workload whose victims are chosen has its promise.
    if (p_.state.pod(outcome.step.front()).status != PodStatus::kPending) continue;
    DemandFor(outcome);
  }
}

void Cycle::TakeBack() {
  for (const DemandCharge& charge : demand_charges_) {
    p_.books.mutable_ledger().Release(charge.leaf, charge.amount, charge.preemptible);
  }
  for (state::PodId pod : promised_) state::ReleasePromise(p_.state, pod);
}

}  // namespace fairlead::engine
