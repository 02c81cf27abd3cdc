#include "core/reconcile/refusals.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/gang.h"

namespace fairlead::core {
namespace {

using state::PodStatus;

// The pauses before evictions of a broken gang are repeated.
constexpr Backoff kEvictAgain = {absl::Seconds(10), absl::Minutes(1)};

bool IsBound(PodStatus status) {
  return status == PodStatus::kBound || status == PodStatus::kRunning;
}

}  // namespace

bool BindingRefusals::IsRowOf(const Row& row, const state::Workload& workload) const {
  return workload.id != state::kNoId && row.uid == workload.uid;
}

void BindingRefusals::Refused(const state::PodRecord& pod, const std::string& reason,
                              absl::Time now) {
  if (pod.workload == state::kNoId) return;
  const state::Workload& workload = state_.workload(pod.workload);
  Row& row = rows_[workload.id];
  if (!IsRowOf(row, workload)) {
    row = Row();
    row.uid = workload.uid;
  }
  row.pods[pod.name] = reason;
  row.since = std::min(row.since, now);
}

void BindingRefusals::Accepted(const state::PodRecord& pod) {
  const auto found = rows_.find(pod.workload);
  if (found == rows_.end()) return;
  changed_ = found->second.pods.erase(pod.name) > 0 || changed_;
  if (found->second.pods.empty()) rows_.erase(found);
}

const BindingRefusals::Row* BindingRefusals::Find(const state::Workload& workload) const {
  const auto found = rows_.find(workload.id);
  return found != rows_.end() && IsRowOf(found->second, workload) ? &found->second : nullptr;
}

bool BindingRefusals::Includes(const state::PodRecord& pod) const {
  if (rows_.empty() || pod.workload == state::kNoId) return false;
  const Row* row = Find(state_.workload(pod.workload));
  return row != nullptr && row->pods.contains(pod.name);
}

bool BindingRefusals::TakeChanges() { return std::exchange(changed_, false); }

bool BindingRefusals::Renew(const state::Workload& workload, Row& row) {
  if (!IsRowOf(row, workload)) return false;
  const size_t left = std::erase_if(row.pods, [&](const auto& entry) {
    const state::PodId pod = state_.FindPod(workload.ns, entry.first);
    // A pod that was evicted may be created again under its name.
    if (pod == state::kNoId) return !row.broken;
    return state_.pod(pod).workload != workload.id || IsBound(state_.pod(pod).status) ||
           state::IsFinished(state_.pod(pod).status);
  });
  changed_ = left > 0 || changed_;
  return !row.pods.empty();
}

// Pods with a refused binding do not count, whether it is being repeated or not.
bool BindingRefusals::IsHalfBound(const state::Workload& workload, const Row& row) const {
  if (!workload.is_group || engine::GangMinimum(workload) < 2) return false;
  state::Workload without = workload;
  bool any = false;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    any = any || IsBound(pod.status);
    if (pod.status != PodStatus::kBinding || !row.pods.contains(pod.name)) continue;
    if (pod.set >= 0) --without.active[static_cast<size_t>(pod.set)];
  }
  return any && !engine::IsSatisfied(without);
}

std::vector<BindingRefusals::Break> BindingRefusals::TakeBreaks(
    absl::Time now, const std::function<bool(state::PodId)>& awaits_answer) {
  wake_at_ = absl::InfiniteFuture();
  std::vector<Break> breaks;
  for (auto it = rows_.begin(); it != rows_.end();) {
    const state::Workload& workload = state_.workload(it->first);
    Row& row = it->second;
    if (!Renew(workload, row)) {
      it = rows_.erase(it);
      continue;
    }
    ++it;
    const bool grace_is_over =
        options_.grace >= absl::ZeroDuration() && row.since != absl::InfiniteFuture() &&
        workload.details->staleness_grace.value_or(options_.grace) >= absl::ZeroDuration();
    if (!row.broken && grace_is_over) {
      if (now < row.since + options_.grace) {
        if (workload.is_group) wake_at_ = std::min(wake_at_, row.since + options_.grace);
        continue;
      }
      if (!IsHalfBound(workload, row)) continue;
      row.broken = true;
      row.attempts = 0;
      row.since = absl::InfiniteFuture();
      ++row.breaks;
    }
    if (!row.broken) continue;
    const bool any =
        std::any_of(workload.pods.begin(), workload.pods.end(),
                    [this](state::PodId pod) { return IsBound(state_.pod(pod).status); });
    if (any && !IsHalfBound(workload, row)) {
      row.broken = false;  // its minimum was lowered, or other pods complete it
      continue;
    }
    if (now < row.look_at) {
      wake_at_ = std::min(wake_at_, row.look_at);
      continue;
    }
    Break found{.workload = workload.id,
                .evict = {},
                .hold = {},
                .until = now + options_.pause.Pause(row.breaks),
                .message = absl::StrCat("Evicted: its gang could not be completed; binding of pod ",
                                        model::Key(workload.ns, row.pods.begin()->first),
                                        " was refused: ", row.pods.begin()->second)};
    bool open = false;  // a binding that was sent before the break may still be accepted
    for (const state::PodId id : workload.pods) {
      const PodStatus status = state_.pod(id).status;
      if (IsBound(status)) found.evict.push_back(id);
      if (status == PodStatus::kPending || status == PodStatus::kBinding) found.hold.push_back(id);
      open = open || (status == PodStatus::kBinding && awaits_answer(id));
    }
    if (found.evict.empty() && !open) {
      row.broken = false;
      continue;
    }
    if (found.evict.empty()) continue;
    row.look_at = now + kEvictAgain.Pause(++row.attempts);
    wake_at_ = std::min(wake_at_, row.look_at);
    breaks.push_back(std::move(found));
  }
  return breaks;
}

}  // namespace fairlead::core
