#include "scheduler/engine/stale_index.h"

#include "scheduler/engine/gang.h"

namespace fairlead::engine {

void StaleIndex::Refresh(const state::Workload& workload) {
  const bool marked = !workload.plain && workload.details->stale_since != absl::InfiniteFuture();
  if (marked || !BelowMinimum(workload).empty()) {
    gangs_.try_emplace(workload.id);
  } else {
    gangs_.erase(workload.id);
  }
}

}  // namespace fairlead::engine
