// Bindings of pods with ResourceClaims: they wait in the book of claims until these are allocated
// and reserved for them. Part of DecisionLoop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_impl.h"

namespace fairlead::core {
namespace {

// So long an allocated claim may be of no use to the pods that wait with it: a binding may be on
// its way, or a former process's; a pod whose binding failed comes again.
constexpr absl::Duration kIdleGrace = absl::Seconds(10);

}  // namespace

void DecisionLoop::Impl::DeviceKindSynced(const model::Synced& synced_kind) {
  if (!model::IsDeviceKind(synced_kind.kind)) return;
  if (synced_kind.missing) {
    missing_device_kinds.insert(synced_kind.kind);
  } else {
    missing_device_kinds.erase(synced_kind.kind);
  }
  if (state.SetClaimsReadable(missing_device_kinds.empty()).Any()) dirty = true;
}

state::Change DecisionLoop::Impl::UpsertClaim(const model::ResourceClaim& claim) {
  return state.UpsertDeviceObject(claims.Seen(claim));
}

void DecisionLoop::Impl::ClaimsOfPodChanged(const model::Pod& pod) {
  if (!claims.Holds(pod.meta.ns, pod.meta.name)) return;
  // Bound by somebody else, about to go, or another pod by now.
  if (FindBinding(pod.meta.ns, pod.meta.name, pod.meta.uid) == state::kNoId) {
    claims.Drop(pod.meta.ns, pod.meta.name);
  }
}

void DecisionLoop::Impl::HoldClaims(state::PodId pod, model::BindPod bind, absl::Time now,
                                    StepResult& result) {
  std::vector<ClaimReservations::Claim> held;
  for (const std::string& key : state.ClaimKeysOf(pod)) {
    const model::ResourceClaim& claim = state.devices().Find(key)->object;
    if (!state.devices().IsWhole(key)) {
      // Somebody else's allocation, or another device, has become known since the decision.
      FailBinding(pod, absl::StrCat("ResourceClaim ", key, " has not all of its devices any more"),
                  now, result);
      return;
    }
    held.push_back({claim, state.devices().AllocationOf(key)});
  }
  claims.Hold(std::move(bind), std::move(held));
}

void DecisionLoop::Impl::ServeClaims(absl::Time now, StepResult& result) {
  if (!claims.HasWork(now)) return;
  ClaimReservations::Outcome due = claims.Step(now);
  for (model::Action& action : due.actions) Emit(std::move(action), result);
  for (const model::ResourceClaim& claim : due.claims) {
    // What is on its way to be written was decided with: it makes no room and takes none.
    if (state.UpsertDeviceObject(claim).Any() && !claim.allocated) dirty = true;
  }
  for (const ClaimReservations::Failure& failure : due.failed) {
    const state::PodId pod = FindBinding(failure.ns, failure.name, failure.uid);
    if (pod != state::kNoId) FailBinding(pod, failure.reason, now, result);
  }
  for (model::BindPod& bind : due.bindings) {
    const state::PodId pod = FindBinding(bind.ns, bind.name, bind.uid);
    if (pod == state::kNoId) continue;
    if (!state.node(state.pod(pod).node).exists) {
      FailBinding(pod, absl::StrCat("node ", bind.node, " is gone"), now, result);
    } else {
      BindClaimed(state.pod(pod), std::move(bind), now, result);
    }
  }
}

void DecisionLoop::Impl::FreeIdleClaims(absl::Time now, StepResult& result) {
  std::map<std::string, absl::Time> idle;
  for (const std::string& key : state.IdleClaims()) {
    if (claims.Knows(key)) continue;
    const auto known = idle_claims.find(key);
    absl::Time& since = idle[key];
    since = known == idle_claims.end() ? now : known->second;
    if (now >= since + kIdleGrace) {
      const model::ObjectMeta& meta = state.devices().Find(key)->object.meta;
      Emit({0, model::DeallocateClaim{meta.ns, meta.name, meta.uid, meta.resource_version}},
           result);
      since = now;  // to be asked again if that did not help
    }
    wake_at = std::min(wake_at, since + kIdleGrace);
  }
  idle_claims = std::move(idle);
}

}  // namespace fairlead::core
