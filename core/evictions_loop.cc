// Evictions of DecisionLoop: from the engine's decisions to requests, and their answers.
#include <algorithm>
#include <set>
#include <utility>

#include "core/decision_loop_impl.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {

void DecisionLoop::Impl::AddEvictions(const engine::CycleResult& cycle, StepResult& result) {
  std::vector<Evictions::Victim> set;
  for (size_t i = 0; i < cycle.evictions.size(); ++i) {
    const engine::Eviction& eviction = cycle.evictions[i];
    const state::PodRecord& pod = state.pod(eviction.pod);
    const state::Workload& own = state.workload(pod.workload);
    set.push_back({.evict = {pod.ns, pod.name, pod.uid, "PreemptionByScheduler", eviction.message},
                   .gang = pod.workload,
                   .may_be_refused = eviction.against_budget,
                   .for_workload = eviction.for_workload,
                   .node = pod.node,
                   .for_itself = eviction.for_workload == model::Key(own.ns, own.name)});
    if (i + 1 == cycle.evictions.size() || cycle.evictions[i + 1].set != eviction.set) {
      evictions.Add(std::exchange(set, {}));
    }
  }
  // The group's annotation keeps the start of the grace period across a restart.
  for (const engine::StaleChange& change : cycle.stale) {
    const state::Workload& workload = state.workload(change.workload);
    if (workload.group == nullptr) continue;
    model::SetPodGroupAnnotations write{workload.ns, workload.name, workload.uid, {}};
    write.annotations.Set(model::kStaleSinceAnnotation,
                          change.since.has_value() ? Timestamp(*change.since) : "");
    Emit({0, std::move(write)}, result);
  }
}

DecisionLoop::Impl::Served DecisionLoop::Impl::WhatIsServed() const {
  Served served;
  for (const engine::Waiting& entry : waiting) {
    served.waiting.insert(entry.workload);
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node != state::kNoId) served.promised.insert(pod.node);
    }
  }
  return served;
}

// True if the workload for which the set was chosen still waits, and workloads are still pipelined
// to the released capacity. Queue order decides which of them gets it, not this set.
bool DecisionLoop::Impl::Serves(const Evictions::Purpose& purpose, const Served& served) const {
  const size_t slash = purpose.for_workload.find('/');
  const std::string ns = purpose.for_workload.substr(0, slash);
  const std::string name = purpose.for_workload.substr(slash + 1);
  state::WorkloadId id = state.FindGroup(ns, name);
  if (id == state::kNoId) {
    const state::PodId pod = state.FindPod(ns, name);
    if (pod == state::kNoId) return false;
    id = state.pod(pod).workload;
  }
  if (purpose.for_itself) return true;
  return served.waiting.contains(id) &&
         std::any_of(purpose.nodes.begin(), purpose.nodes.end(),
                     [&](state::NodeId node) { return served.promised.contains(node); });
}

void DecisionLoop::Impl::PruneEvictions() {
  const Served served = WhatIsServed();
  const auto serves = [&](const Evictions::Purpose& purpose) { return Serves(purpose, served); };
  const std::vector<model::EvictPod> spared = evictions.Prune(serves);
  for (const model::EvictPod& evict : spared) TakeBack(evict);
  if (!spared.empty()) engine->OnQueuesChanged();  // their requests count again
}

void DecisionLoop::Impl::SendEvictions(absl::Time now, StepResult& result) {
  if (evictions.queued() == 0 || stale()) return;
  PruneEvictions();
  const auto wanted = [this](const Evictions::Victim& victim) {
    return FindLeaving(victim.evict) != state::kNoId;
  };
  std::set<state::WorkloadId> evicted;
  for (model::EvictPod& evict : evictions.TakeDue(now, wanted)) {
    ++stats.evictions;
    evicted.insert(state.pod(FindLeaving(evict)).workload);
    Emit({0, std::move(evict)}, result);
  }
  for (const state::WorkloadId workload : evicted) RenewDelay(workload, now, result);
}

void DecisionLoop::Impl::RenewDelay(state::WorkloadId id, absl::Time now, StepResult& result) {
  const state::Workload& workload = state.workload(id);
  if (workload.group == nullptr || workload.details->preemption_delay == absl::ZeroDuration())
    return;
  state.SetLastEviction(id, absl::FromUnixSeconds(absl::ToUnixSeconds(now)));
  model::SetPodGroupAnnotations write{workload.ns, workload.name, workload.uid, {}};
  write.annotations.Set(model::kLastEvictionAnnotation, Timestamp(now));
  Emit({0, std::move(write)}, result);
}

// The pod, if only our decision makes it leave.
state::PodId DecisionLoop::Impl::FindLeaving(const model::EvictPod& evict) const {
  const state::PodId id = state.FindPod(evict.ns, evict.name);
  if (id == state::kNoId) return id;
  const state::PodRecord& pod = state.pod(id);
  const bool leaving =
      pod.uid == evict.uid && pod.status == state::PodStatus::kReleasing && !pod.terminating;
  return leaving ? id : state::kNoId;
}

void DecisionLoop::Impl::TakeBack(const model::EvictPod& evict) {
  const state::PodId pod = FindLeaving(evict);
  if (pod != state::kNoId && state.ForgetEviction(pod).Any()) dirty = true;
}

void DecisionLoop::Impl::EvictionAnswered(InFlightEviction eviction, const absl::Status& status,
                                          absl::Time now) {
  const model::EvictPod& evict = eviction.evict;
  if (status.ok() || absl::IsNotFound(status)) {
    evictions.Accepted(evict.uid);
    if (options.emit_events && status.ok()) {
      events.push_back(model::EmitEvent{model::Kind::kPod, evict.ns, evict.name, evict.uid, false,
                                        "Evicted", evict.message});
    }
    return;
  }
  // A refusal after an unknown outcome is believed: at worst the pod goes although its capacity
  // counts as used, and the watch shows that.
  if (OutcomeOf(status, /*in_doubt=*/false) == Outcome::kUnknown) {
    evictions.Unknown(evict.uid);
    if (FindLeaving(evict) != state::kNoId) {
      in_flight.RetryLater(std::move(eviction), now);
    } else {
      evictions.Forget(evict.uid);
    }
    return;
  }
  absl::Time until;
  for (const model::EvictPod& spared : evictions.Refused(evict.uid, now, until)) TakeBack(spared);
  const state::PodId pod = FindLeaving(evict);
  if (pod == state::kNoId) return;
  TakeBack(evict);
  engine->OnEvictionRefused(pod, until, /*by_budget=*/absl::IsResourceExhausted(status));
}

}  // namespace fairlead::core
