#include "core/claim_plugin.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

// How long an allocated claim may be unused by the pods that wait with it. A binding, of this or a
// former process, may be in flight; and a pod with a failed binding comes again.
constexpr absl::Duration kIdleGrace = absl::Seconds(10);

}  // namespace

ClaimPlugin::ClaimPlugin(state::ClusterState& state, const Options& options)
    : state_(state),
      claims_(options.backoff, options.binding_timeout),
      extended_(options.backoff),
      rules_{.backoff = options.backoff, .unseen = {kIdleGrace, absl::Minutes(5)}},
      emit_events_(options.emit_events) {}

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
  const state::ClusterState::ExtendedClaim extended = state_.ExtendedClaimOf(pod.id);
  model::SetExtendedClaim write;
  if (extended.by_claim) {
    write.claim = extended.key.substr(pod.ns.size() + 1);
    for (const auto& resource : extended.resources) {
      write.resources.push_back({resource.resource, resource.device_class});
    }
  }
  if (write.claim == extended.told && (extended.exists || !extended.by_claim)) {
    return ReserveDevices(pod, std::move(bind));
  }
  write.ns = pod.ns;
  write.name = pod.name;
  write.uid = pod.uid;
  write.node = bind.node;
  extended_.Hold(std::move(bind), std::move(write));
  return absl::OkStatus();
}

absl::Status ClaimPlugin::ReserveDevices(const state::PodRecord& pod, model::BindPod bind) {
  const state::ClusterState::ExtendedClaim extended = state_.ExtendedClaimOf(pod.id);
  std::vector<ClaimReservations::Claim> held;
  for (const std::string& key : state_.ClaimKeysOf(pod.id)) {
    if (key == extended.key && !extended.by_claim) continue;
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
  extended_.Drop(ns, name);
  claims_.Drop(ns, name);
}

void ClaimPlugin::PodGone(absl::string_view ns, absl::string_view name, absl::string_view uid) {
  extended_.Drop(ns, name, uid);
  claims_.Drop(ns, name, uid);
}

bool ClaimPlugin::IsShown(const std::string& claim) const {
  const state::ClaimRow* row = state_.devices().Find(claim);
  return row != nullptr && row->exists && !row->implied;
}

bool ClaimPlugin::HasWork(absl::Time now) const {
  return claims_.HasWork(now) ||
         extended_.HasWork(now, [this](const std::string& claim) { return IsShown(claim); });
}

std::vector<BindingPlugin::Failure> ClaimPlugin::GoOn(BindingPlugin::Progress made) {
  std::vector<Failure> failed = std::move(made.failed);
  for (model::BindPod& bind : made.reserved) {
    const state::PodId pod = state_.FindPod(bind.ns, bind.name);
    if (pod == state::kNoId || state_.pod(pod).uid != bind.uid) continue;
    Failure failure{bind.ns, bind.name, bind.uid, ""};
    const absl::Status reserved = ReserveDevices(state_.pod(pod), std::move(bind));
    if (reserved.ok()) continue;
    failure.reason = std::string(reserved.message());
    failed.push_back(std::move(failure));
  }
  return failed;
}

BindingPlugin::Progress ClaimPlugin::Advance(absl::Time now) {
  Progress made = extended_.Step(now, [this](const std::string& claim) { return IsShown(claim); });
  std::vector<model::Action> actions = std::move(made.actions);
  std::vector<Failure> failed = GoOn(std::move(made));
  ClaimReservations::Outcome due = claims_.Step(now);
  for (const model::ResourceClaim& claim : due.claims) {
    // The decision already counted an allocation in flight: this changes no capacity.
    if (state_.UpsertDeviceObject(claim).Any() && !claim.allocated) freed_ = true;
  }
  actions.insert(actions.end(), std::make_move_iterator(due.actions.begin()),
                 std::make_move_iterator(due.actions.end()));
  failed.insert(failed.end(), due.failed.begin(), due.failed.end());
  for (model::Action& event : EventsAbout(due.preparing)) actions.push_back(std::move(event));
  return {std::move(actions), std::move(due.bindings), std::move(failed)};
}

std::vector<model::Action> ClaimPlugin::EventsAbout(
    const std::vector<ClaimReservations::Outcome::Preparing>& pods) const {
  std::vector<model::Action> events;
  if (!emit_events_) return events;
  for (const ClaimReservations::Outcome::Preparing& waits : pods) {
    const state::PodId id = state_.FindPod(waits.ns, waits.name);
    if (id == state::kNoId) continue;
    const state::PodRecord& pod = state_.pod(id);
    model::EmitEvent event;
    event.ns = pod.ns;
    event.name = pod.name;
    event.uid = pod.uid;
    // Reason, action and note are kube-scheduler's.
    event.reason = "BindingConditionsPending";
    event.note = absl::StrCat("waiting for binding conditions for device on node ", waits.node);
    event.action = model::EventAction::kScheduling;
    event.reporter = std::string(state_.SchedulerNameOf(pod));
    events.push_back({0, std::move(event)});
  }
  return events;
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
    const model::ResourceClaim& claim = state_.devices().Find(key)->object;
    // No binding can be in flight that needs it.
    if (!claims_.WhyHopeless(claim, now).empty()) idle.since = absl::InfinitePast();
    if (idle.due() > now) continue;
    const model::ObjectMeta& meta = claim.meta;
    actions.push_back(
        {0, model::DeallocateClaim{meta.ns, meta.name, meta.uid, meta.resource_version}});
    idle.deallocation.Sent(now, rules_);
  }
  idle_ = std::move(still);
  wake_at = std::min(wake_at, idle_wake_at());
  return actions;
}

}  // namespace fairlead::core
