#include "scheduler/engine/eviction_backoff.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fairlead::engine {

using state::PodStatus;

void EvictionBackoff::OnEvicted(const state::Workload& workload,
                                const std::vector<state::PodId>& victims) {
  Row& row = rows_[workload.uid];
  row.workload = workload.id;
  if (!row.refused) row.victims.clear();
  row.again = std::exchange(row.refused, false);
  for (const state::PodId victim : victims) {
    row.victims.emplace_back(victim, state_.pod(victim).uid);
  }
}

bool EvictionBackoff::Leaves(state::PodId id, const std::string& uid) const {
  const state::PodRecord& pod = state_.pod(id);
  return pod.id != id || pod.uid != uid || pod.status == PodStatus::kReleasing;
}

void EvictionBackoff::OnEvictionRefused(const state::PodRecord& pod, absl::Time now) {
  const std::pair<state::PodId, std::string> refused(pod.id, pod.uid);
  for (auto& [uid, row] : rows_) {
    if (std::erase(row.victims, refused) == 0) continue;
    const bool in_vain =
        std::any_of(row.victims.begin(), row.victims.end(),
                    [this](const auto& victim) { return Leaves(victim.first, victim.second); });
    if (!in_vain) continue;
    row.refused = true;
    if (row.again) Lose(row, now);
  }
}

void EvictionBackoff::OnPlaceLost(const state::Workload& workload, absl::Time now) {
  const auto found = rows_.find(workload.uid);
  if (found != rows_.end() && !found->second.victims.empty()) Lose(found->second, now);
}

void EvictionBackoff::Lose(Row& row, absl::Time now) {
  row.victims.clear();
  row.refused = row.again = false;
  row.until = now + kPauses.Pause(++row.losses);
}

bool EvictionBackoff::Waits(const std::string& uid, const Row& row) const {
  const state::Workload& workload = state_.workload(row.workload);
  if (workload.id != row.workload || workload.uid != uid) return false;
  return std::any_of(workload.pods.begin(), workload.pods.end(), [this](state::PodId pod) {
    const PodStatus status = state_.pod(pod).status;
    return status == PodStatus::kPending || status == PodStatus::kGated ||
           status == PodStatus::kPipelined || status == PodStatus::kBinding;
  });
}

std::vector<state::WorkloadId> EvictionBackoff::Begin(absl::Time now) {
  std::vector<state::WorkloadId> changed;
  for (auto entry = rows_.begin(); entry != rows_.end();) {
    Row& row = entry->second;
    const bool waits = Waits(entry->first, row);
    const bool held = waits && row.until > now;
    if (held != row.held) changed.push_back(row.workload);
    row.held = held;
    entry = waits ? std::next(entry) : rows_.erase(entry);
  }
  return changed;
}

bool EvictionBackoff::Holds(const state::Workload& workload) const {
  const auto found = rows_.find(workload.uid);
  return found != rows_.end() && found->second.held;
}

absl::Time EvictionBackoff::wake_at() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [uid, row] : rows_) {
    if (row.held) next = std::min(next, row.until);
  }
  return next;
}

}  // namespace fairlead::engine
