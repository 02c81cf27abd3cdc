#include "scheduler/engine/eviction_backoff.h"

#include <algorithm>
#include <iterator>

namespace fairlead::engine {

using state::PodStatus;

void EvictionBackoff::OnEvicted(const state::Workload& workload) {
  Row& row = rows_[workload.uid];
  row.workload = workload.id;
  row.evicted = true;
}

void EvictionBackoff::OnPlaceLost(const state::Workload& workload, absl::Time now) {
  const auto found = rows_.find(workload.uid);
  if (found == rows_.end() || !found->second.evicted) return;
  Row& row = found->second;
  row.evicted = false;
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
