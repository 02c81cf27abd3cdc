#include "scheduler/engine/preemptors.h"

#include <algorithm>

namespace fairlead::engine {

using state::PodStatus;

bool Preemptors::Waits(const Preemptor& preemptor) const {
  const state::Workload& workload = state_.workload(preemptor.workload);
  return workload.id == preemptor.workload && workload.uid == preemptor.uid &&
         workload.Count(PodStatus::kPending) > 0;
}

std::vector<state::WorkloadId> Preemptors::Begin(absl::Time now) {
  std::erase_if(rows_, [&](Row& row) {
    const auto gone = std::erase_if(row.victims, [this](const auto& victim) {
      const state::PodRecord& pod = state_.pod(victim.first);
      return pod.id != victim.first || pod.uid != victim.second ||
             pod.status != PodStatus::kReleasing;
    });
    if (gone > 0) row.until = now + kHeldFor;
    const bool ends = now >= row.until || !Waits(row.preemptor);
    if (ends) changed_.push_back(row.preemptor.workload);
    return ends;
  });
  return std::exchange(changed_, {});
}

bool Preemptors::Contains(state::WorkloadId workload) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [workload](const Row& row) { return row.preemptor.workload == workload; });
}

void Preemptors::Serve(absl::FunctionRef<bool(const Preemptor&)> serve) {
  std::erase_if(rows_, [&](const Row& row) {
    const bool ends = !serve(row.preemptor);
    if (ends) changed_.push_back(row.preemptor.workload);
    return ends;
  });
}

void Preemptors::Add(Preemptor preemptor, const std::vector<state::PodId>& victims,
                     absl::Time now) {
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& other) {
    return other.preemptor.workload == preemptor.workload;
  });
  if (row == rows_.end()) {
    changed_.push_back(preemptor.workload);
    row = rows_.insert(rows_.end(), Row{});
  }
  row->preemptor = std::move(preemptor);
  row->until = now + kHeldFor;
  for (const state::PodId victim : victims) {
    row->victims.emplace_back(victim, state_.pod(victim).uid);
  }
}

absl::Time Preemptors::wake_at() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Row& row : rows_) next = std::min(next, row.until);
  return next;
}

}  // namespace fairlead::engine
