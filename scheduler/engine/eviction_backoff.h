// How long no pod is evicted for workloads that lost their place although pods had been evicted for
// them: longer after each such loss.
//
// A place is lost in three ways, and each would have pods evicted for the workload again, and their
// successors, without end:
//   - The binding fails: a webhook or a policy refuses it. The pause between two attempts
//     (bind_backoff.h) is short, because a refusal of the moment costs little.
//   - The place goes to another workload in the cycle that decides the binding. So it is if a pod
//     is moved by consolidation, finds the place that it was to move to taken when it is created
//     again, and reclaims the place that it has left.
//   - Of several pods that had to go some go, and the eviction of another one is refused: by a
//     budget that spares one of them, say, or by a webhook. Another pod may go in its stead, so
//     that nothing went in vain; if that is refused too, the place is lost.
// Capacity that is free is given to the workload all the same.
//
// A workload is forgotten when nothing of it waits or is being bound. Not kept over a restart.
//
// Ownership: the engine's; borrows the state. Thread-safety: the owner's thread. Complexity:
// O(log rows), Begin() O(rows); a row is a workload that waits and had pods evicted for it.
// Determinism: rows are in the order of uids.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class EvictionBackoff {
 public:
  static constexpr Backoff kPauses = {absl::Seconds(10), absl::Hours(1)};

  explicit EvictionBackoff(const state::ClusterState& state) : state_(state) {}

  // These pods are to be evicted, or moved, for the workload.
  void OnEvicted(const state::Workload& workload, const std::vector<state::PodId>& victims);
  // The eviction of the pod was refused, and it stays.
  void OnEvictionRefused(const state::PodRecord& pod, absl::Time now);
  // One of its pods lost its place, as above. Losses that follow one eviction count once.
  void OnPlaceLost(const state::Workload& workload, absl::Time now);

  // A cycle begins. Returns workloads, perhaps gone, for which Holds() may have changed.
  std::vector<state::WorkloadId> Begin(absl::Time now);
  // No pod is to be evicted for the workload, by the time of the last Begin().
  [[nodiscard]] bool Holds(const state::Workload& workload) const;
  // The earliest end of a pause that goes on; infinite future if there is none.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  struct Row {
    state::WorkloadId workload = state::kNoId;
    // Of the last decision, and of the one before if one was refused then; with their uids. None
    // after a loss.
    std::vector<std::pair<state::PodId, std::string>> victims;
    bool refused = false;  // one of the last decision
    bool again = false;    // and one of the decision before
    bool held = false;
    int64_t losses = 0;
    absl::Time until = absl::InfinitePast();
  };
  [[nodiscard]] bool Waits(const std::string& uid, const Row& row) const;
  // It goes, or has gone.
  [[nodiscard]] bool Leaves(state::PodId pod, const std::string& uid) const;
  static void Lose(Row& row, absl::Time now);

  const state::ClusterState& state_;
  std::map<std::string, Row> rows_;  // by the workload's uid
};

}  // namespace fairlead::engine
