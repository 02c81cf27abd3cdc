// Gangs that run below a minimum: which ones there are, and since when each of their sub-groups is
// below its own.
//
// The time of the gang as a whole is WorkloadDetails::stale_since, which is written to the
// PodGroup. Those of sub-groups are kept here alone: after a restart their grace period begins
// again.
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: Refresh() O(log n), and O(sets)
// for a workload with sub-groups. Determinism: ordered maps.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "scheduler/state/records.h"

namespace fairlead::engine {

class StaleIndex {
 public:
  // By GangSet::name, because the object may list its sub-groups in another order later.
  using SubGroups = std::map<std::string, absl::Time>;

  // Files a workload that is below a minimum, or is marked as such; forgets any other.
  void Refresh(const state::Workload& workload);
  void Remove(state::WorkloadId workload) { gangs_.erase(workload); }

  // By workload. The action stale gangs keeps the times.
  [[nodiscard]] std::map<state::WorkloadId, SubGroups>& gangs() { return gangs_; }

 private:
  std::map<state::WorkloadId, SubGroups> gangs_;
};

}  // namespace fairlead::engine
