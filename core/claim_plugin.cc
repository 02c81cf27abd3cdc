#include "core/claim_plugin.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

// How long an allocated claim may be unused by the pods that wait with it. A binding, of this or a
// former process, may be in flight; and a pod with a failed binding comes again.
constexpr absl::Duration kIdleGrace = absl::Seconds(10);

}  // namespace

ClaimPlugin::ClaimPlugin(state::ClusterState& state, Backoff backoff)
    : state_(state),
      claims_(backoff),
      rules_{.backoff = backoff, .unseen = {kIdleGrace, absl::Minutes(5)}} {}

bool ClaimPlugin::Needs(const state::PodRecord& pod) const {
  return !state_.ClaimKeysOf(pod.id).empty();
}

bool ClaimPlugin::IsLeaving(const std::string& claim) const {
  const auto idle = idle_.find(claim);
  if (idle == idle_.end() || !state_.devices().Find(claim)->object.allocated) return false;
  const WriteAttempts& write = idle->second.deallocation;
  return write.in_flight() || write.accepted();
}

absl::Status ClaimPlugin::Reserve(const state::PodRecord& pod, model::BindPod bind) {
  std::vector<ClaimReservations::Claim> held;
  for (const std::string& key : state_.ClaimKeysOf(pod.id)) {
    if (IsLeaving(key)) {
      return absl::FailedPreconditionError(
          absl::StrCat("ResourceClaim ", key, " is being deallocated"));
    }
    // Another allocation, or another device, may have become known since the decision.
    if (!state_.devices().IsWhole(key)) {
      return absl::FailedPreconditionError(
          absl::StrCat("ResourceClaim ", key, " no longer has all of its devices"));
    }
    held.push_back({state_.devices().Find(key)->object, state_.devices().AllocationOf(key)});
  }
  claims_.Hold(std::move(bind), std::move(held));
  return absl::OkStatus();
}

void ClaimPlugin::Unreserve(const std::string& ns, const std::string& name) {
  claims_.Drop(ns, name);
}

BindingPlugin::Progress ClaimPlugin::Advance(absl::Time now) {
  ClaimReservations::Outcome due = claims_.Step(now);
  for (const model::ResourceClaim& claim : due.claims) {
    // The decision already counted an allocation in flight: this changes no capacity.
    if (state_.UpsertDeviceObject(claim).Any() && !claim.allocated) freed_ = true;
  }
  return {std::move(due.actions), std::move(due.bindings), std::move(due.failed)};
}

void ClaimPlugin::Answered(const std::string& claim, bool reserved, const absl::Status& status,
                           const std::string& version, absl::Time now) {
  claims_.Answered(claim, reserved, status, version, now);
  const auto idle = idle_.find(claim);
  if (idle != idle_.end() && !reserved) idle->second.deallocation.Answered(status, now, rules_);
}

absl::Time ClaimPlugin::Idle::due() const {
  return std::max(since + kIdleGrace, deallocation.due());
}

absl::Time ClaimPlugin::idle_wake_at() const {
  absl::Time at = absl::InfiniteFuture();
  for (const auto& [key, idle] : idle_) at = std::min(at, idle.due());
  return at;
}

std::vector<model::Action> ClaimPlugin::FreeIdle(absl::Time now, absl::Time& wake_at) {
  std::vector<model::Action> actions;
  std::map<std::string, Idle> still;
  for (const std::string& key : state_.IdleClaims()) {
    if (claims_.Knows(key)) continue;
    const auto known = idle_.find(key);
    Idle& idle =
        still.emplace(key, known == idle_.end() ? Idle{now, {}} : known->second).first->second;
    if (idle.due() > now) continue;
    const model::ObjectMeta& meta = state_.devices().Find(key)->object.meta;
    actions.push_back(
        {0, model::DeallocateClaim{meta.ns, meta.name, meta.uid, meta.resource_version}});
    idle.deallocation.Sent(now, rules_);
  }
  idle_ = std::move(still);
  wake_at = std::min(wake_at, idle_wake_at());
  return actions;
}

}  // namespace fairlead::core
