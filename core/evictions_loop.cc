// Evictions of DecisionLoop: from the engine's decisions to requests, and what their answers mean.
#include <set>
#include <utility>

#include "core/decision_loop_impl.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {

void DecisionLoop::Impl::EvictVictims(const engine::CycleResult& cycle, absl::Time now,
                                      StepResult& result) {
  std::vector<Evictions::Victim> set;
  for (size_t i = 0; i < cycle.evictions.size(); ++i) {
    const engine::Eviction& eviction = cycle.evictions[i];
    const state::PodRecord& pod = state.pod(eviction.pod);
    set.push_back({{pod.ns, pod.name, pod.uid, "PreemptionByScheduler", eviction.message},
                   pod.workload,
                   eviction.against_budget,
                   eviction.for_workload});
    if (i + 1 == cycle.evictions.size() || cycle.evictions[i + 1].set != eviction.set) {
      evictions.Add(std::exchange(set, {}));
    }
  }
  // The time that the grace period counts from outlives a restart in the group's annotation.
  for (const engine::StaleChange& change : cycle.stale) {
    const state::Workload& workload = state.workload(change.workload);
    if (workload.group == nullptr) continue;
    model::SetPodGroupAnnotations write{workload.ns, workload.name, workload.uid, {}};
    write.annotations.Set(model::kStaleSinceAnnotation,
                          change.since.has_value() ? Timestamp(*change.since) : "");
    Emit({0, std::move(write)}, result);
  }
  SendEvictions(now, result);
}

void DecisionLoop::Impl::SendEvictions(absl::Time now, StepResult& result) {
  for (model::EmitEvent& event : std::exchange(eviction_events, {})) {
    Emit({0, std::move(event)}, result);
  }
  if (evictions.queued() == 0 || stale()) return;
  const auto wanted = [this](const Evictions::Victim& victim) {
    const model::EvictPod& evict = victim.evict;
    const state::PodId pod = FindLeaving(evict);
    if (pod == state::kNoId) return false;
    const size_t slash = victim.for_workload.find('/');
    const std::string ns = victim.for_workload.substr(0, slash);
    const std::string name = victim.for_workload.substr(slash + 1);
    if (state.FindGroup(ns, name) != state::kNoId || state.FindPod(ns, name) != state::kNoId) {
      return true;
    }
    TakeBack(evict);  // nobody needs its room any more
    return false;
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
  if (workload.group == nullptr || workload.preemption_delay == absl::ZeroDuration()) return;
  state.SetLastEviction(id, absl::FromUnixSeconds(absl::ToUnixSeconds(now)));
  model::SetPodGroupAnnotations write{workload.ns, workload.name, workload.uid, {}};
  write.annotations.Set(model::kLastEvictionAnnotation, Timestamp(now));
  Emit({0, std::move(write)}, result);
}

// The pod, if it counts as leaving by our decision alone.
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

void DecisionLoop::Impl::EvictionAnswered(AskedEviction eviction, const absl::Status& status,
                                          absl::Time now) {
  const model::EvictPod& evict = eviction.evict;
  // Whoever is gone needed no asking.
  if (status.ok() || absl::IsNotFound(status)) {
    evictions.Accepted(evict.uid);
    if (options.emit_events && status.ok()) {
      eviction_events.push_back(model::EmitEvent{model::Kind::kPod, evict.ns, evict.name, evict.uid,
                                                 false, "Evicted", evict.message});
    }
    return;
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    evictions.Unknown(evict.uid);
    if (FindLeaving(evict) != state::kNoId) asked.RetryLater(std::move(eviction), now);
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
