#include "scheduler/engine/move_history.h"

#include <algorithm>

namespace fairlead::engine {

using state::PodStatus;

void MoveHistory::Settle(Row& row, absl::Time now) const {
  bool gone = false;
  std::erase_if(row.leaving, [&](const auto& victim) {
    const state::PodRecord& pod = state_.pod(victim.first);
    const bool exists = pod.id == victim.first && pod.uid == victim.second;
    gone = gone || !exists || pod.terminating || state::IsFinished(pod.status);
    return !exists || pod.status != PodStatus::kReleasing;
  });
  if (!gone) return;
  row.leaving.clear();
  row.moves = std::min(row.moves + 1, kMostDoublings);
  row.last_move = now;
}

void MoveHistory::Begin(absl::Time now) {
  const absl::Duration remembered = 2 * min_runtime_ * (int64_t{1} << kMostDoublings);
  absl::erase_if(rows_, [&](auto& entry) {
    auto& [id, row] = entry;
    const state::Workload& workload = state_.workload(id);
    if (workload.id != id || workload.uid != row.uid) return true;
    if (!row.leaving.empty()) Settle(row, now);
    return row.leaving.empty() && row.last_move + remembered < now;
  });
}

void MoveHistory::Add(const std::vector<state::PodId>& victims) {
  if (min_runtime_ <= absl::ZeroDuration()) return;
  for (const state::PodId id : victims) {
    const state::PodRecord& pod = state_.pod(id);
    Row& row = rows_[pod.workload];
    row.uid = state_.workload(pod.workload).uid;
    row.leaving.emplace_back(id, pod.uid);
  }
}

absl::Time MoveHistory::MovableAt(const state::Workload& workload, absl::Time start,
                                  absl::Time now) const {
  if (start > now + min_runtime_) return absl::InfinitePast();
  const auto row = rows_.find(workload.id);
  const int64_t moves =
      row != rows_.end() && row->second.uid == workload.uid ? row->second.moves : 0;
  return start + min_runtime_ * (int64_t{1} << moves);
}

}  // namespace fairlead::engine
