// When the grace periods of terminating pods end: a table beside the pods' rows, because few pods
// terminate at a time.
//
// The end is metadata.deletionTimestamp: the API server sets it to the time of the request plus the
// grace period.
//
// Ownership: plain values. Thread-safety: the state's. Complexity: O(log n) an operation for n pods
// in the table. Determinism: pods are taken by time, then by id.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

class GraceEnds {
 public:
  // Replaces what was set for the pod before.
  void Set(PodId pod, absl::Time end);
  // Does nothing for a pod that is not in the table.
  void Erase(PodId pod);

  // Infinite future if the table is empty.
  [[nodiscard]] absl::Time First() const;
  // The pods whose grace period ended at `time` or before; they leave the table.
  std::vector<PodId> TakeUntil(absl::Time time);

 private:
  absl::btree_set<std::pair<absl::Time, PodId>> in_order_;
  absl::flat_hash_map<PodId, absl::Time> ends_;
};

}  // namespace fairlead::state
