// Pods that other schedulers bind: what they are granted and told.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/decision_loop_impl.h"
#include "scheduler/engine/gang.h"

namespace fairlead::core {

using state::PodStatus;

void DecisionLoop::Impl::Grant(state::PodId pod, uint64_t id) {
  const state::PodRecord& record = state.pod(pod);
  EndGrant(record.uid);  // of a former decision
  grants.Add(id, {record.ns, record.name, record.uid, state.node(record.node).name()}, sending_at);
  // A scheduler that was told to wait looks at the pod again when its object changes.
  nominations.Nominate(pod, sending_at);
}

void DecisionLoop::Impl::GuestSeen(const state::PodRecord& pod) {
  if (pod.status != PodStatus::kBinding) EndGrant(pod.uid);
}

// The pipeline waits for an answer, as it would to a write; it knows what has become of the pod.
void DecisionLoop::Impl::EndGrant(const std::string& uid) {
  if (grants.size() == 0) return;
  const std::optional<uint64_t> id = grants.End(uid);
  if (id.has_value()) answers.push_back({*id, absl::OkStatus()});
}

// The others of its gang would hold their nodes for a pod that waits again, and when it has one
// they would have lost theirs.
void DecisionLoop::Impl::WithdrawGangOf(const GuestGrant& ended) {
  const state::PodId pod = state.FindPod(ended.ns, ended.name);
  if (pod == state::kNoId || state.pod(pod).workload == state::kNoId) return;
  const state::Workload& workload = state.workload(state.pod(pod).workload);
  if (!workload.is_group || BoundPodsOf(workload) >= engine::GangMinimum(workload)) return;
  const state::PodIds pods = workload.pods;
  for (const state::PodId other : pods) {
    const std::optional<uint64_t> id = grants.IdOf(state.pod(other).uid);
    if (id.has_value()) bindings.Withdraw(*id);
  }
}

void DecisionLoop::Impl::EndGrants(absl::Time now) {
  for (const GuestGrants::Expired& expired : grants.TakeExpired(now)) {
    const std::string reason =
        absl::StrCat("its scheduler has not bound it to node ", expired.grant.node, " within ",
                     absl::FormatDuration(absl::Trunc(expired.held, absl::Seconds(1))));
    bindings.Answered(expired.id, absl::InternalError(reason), now);
    WithdrawGangOf(expired.grant);
  }
  if (grants.size() == 0 || grants_checked_at == state.version()) return;
  grants_checked_at = state.version();
  // A write would be refused, or the node's end be seen by its answer. Here nothing tells.
  // Of several that have no room together the last goes first.
  const std::vector<uint64_t> ids = grants.Ids();
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    if (!bindings.NodeHolds(*id)) bindings.Withdraw(*id);
  }
}

// Of the gang of a guest that reserves before it binds no pod goes first: none is bound before all
// are reserved, and one that went first would wait for those that wait for it.
bool DecisionLoop::Impl::GoesFirst(const state::PodRecord& pod) const {
  return refusals.Includes(pod) && !reserving_guests.contains(state.SchedulerNameOf(pod));
}

int64_t DecisionLoop::Impl::BoundPodsOf(const state::Workload& workload) const {
  return std::count_if(workload.pods.begin(), workload.pods.end(), [&](const state::PodId id) {
    const PodStatus status = state.pod(id).status;
    return status == PodStatus::kBound || status == PodStatus::kRunning;
  });
}

// Of its pods as many as it needs are on their nodes, or about to be bound there.
bool DecisionLoop::Impl::GangIsReserved(const state::PodRecord& pod, absl::Time now) const {
  const state::Workload& workload = state.workload(pod.workload);
  if (!workload.is_group) return true;
  const auto reserved =
      std::count_if(workload.pods.begin(), workload.pods.end(), [&](const state::PodId id) {
        const state::PodRecord& other = state.pod(id);
        return other.status == PodStatus::kBinding && grants.IsReserved(other.uid, now);
      });
  return BoundPodsOf(workload) + reserved >= engine::GangMinimum(workload);
}

GuestAnswer DecisionLoop::Impl::AskGuest(const model::Pod& pod, absl::string_view reserved_on,
                                         absl::Time now) {
  using Kind = GuestAnswer::Kind;
  const state::PodId id = state.FindPod(pod.meta.ns, pod.meta.name);
  if (id == state::kNoId || state.pod(id).uid != pod.meta.uid) {
    const bool guest = state.IsGuestScheduler(pod.scheduler_name) && state.IsOurs(pod);
    return {guest ? Kind::kUndecided : Kind::kNotOurs, "", ""};
  }
  const state::PodRecord& record = state.pod(id);
  if (!record.ours || !state.IsGuest(record)) return {Kind::kNotOurs, "", ""};
  if (const std::string* node = grants.NodeOf(record.uid); node != nullptr) {
    if (reserved_on == *node) {
      reserving_guests.insert(pod.scheduler_name);
      grants.Reserved(record.uid, now);
      // What waits for others of its gang gets no more time by that.
      if (!GangIsReserved(record, now)) return {Kind::kHeld, *node, ""};
    }
    grants.Told(record.uid, now);
    return {Kind::kGranted, *node, ""};
  }
  const bool waits = record.status == PodStatus::kPending || record.status == PodStatus::kGated;
  if (!waits || record.workload == state::kNoId) return {Kind::kUndecided, "", ""};
  const auto told = verdicts.ToldOf(state.workload(record.workload));
  if (!told.has_value()) return {Kind::kUndecided, "", ""};
  // Schedulers put it into sentences of their own.
  const absl::string_view reason = absl::StripSuffix(told->sentence, ".");
  return {Kind::kWaits, "", absl::StrCat(verdict::CodeName(told->code), ": ", reason)};
}

GuestAnswer DecisionLoop::AskGuest(const model::Pod& pod, absl::string_view reserved_on,
                                   absl::Time now) {
  if (impl_->input_log != nullptr) impl_->input_log->GuestAsked(pod, reserved_on, now);
  return impl_->AskGuest(pod, reserved_on, now);
}

std::vector<GuestGrant> DecisionLoop::TakeGrants() { return impl_->grants.TakeNew(); }

std::vector<GuestGrant> DecisionLoop::Grants() const { return impl_->grants.All(); }

}  // namespace fairlead::core
