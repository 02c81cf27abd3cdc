// Which workloads consolidation leaves alone because they started a moment ago.
//
// A move ends pods that run, and their controller creates others. On a full cluster in which pods
// end all the time, some waiting workload gains by a move nearly always: without a bound, one gang
// is moved for one of them after the other and gets no work done. So consolidation moves a pod only
// if it has run for the minimum runtime; and this runtime doubles with each move of its workload,
// up to kMostDoublings times. (KAI has no such bound. Reclaim and preemption have bounds of their
// own, queues/min_runtime.h, and are not affected.)
//
// A move counts once its victims are seen to go; a decision that is taken back does not count. The
// moves of a workload are forgotten when it has not been moved for twice the longest runtime, and
// with the workload: a lone pod that a controller creates in the place of another one is a new
// workload. Not kept over a restart.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(moved workloads)
// a cycle. Determinism: nothing depends on the order of the table.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class MoveHistory {
 public:
  static constexpr int64_t kMostDoublings = 6;

  // `min_runtime` 0: nothing is left alone.
  MoveHistory(const state::ClusterState& state, absl::Duration min_runtime)
      : state_(state), min_runtime_(min_runtime) {}

  // A cycle begins: counts moves that are seen, forgets old ones.
  void Begin(absl::Time now);
  // Consolidation evicts these pods, which are in one set of victims.
  void Add(const std::vector<state::PodId>& victims);

  // When pods of the workload that started then may be moved. A start that lies further in the
  // future than the minimum runtime counts as unknown: users can write annotations. O(1)
  [[nodiscard]] absl::Time MovableAt(const state::Workload& workload, absl::Time start,
                                     absl::Time now) const;

 private:
  struct Row {
    std::string uid;  // of the workload
    int64_t moves = 0;
    absl::Time last_move = absl::InfinitePast();
    // Of the last decision, with their uids, until one of them goes or all of them stay.
    std::vector<std::pair<state::PodId, std::string>> leaving;
  };
  void Settle(Row& row, absl::Time now) const;

  const state::ClusterState& state_;
  const absl::Duration min_runtime_;
  absl::flat_hash_map<state::WorkloadId, Row> rows_;
};

}  // namespace fairlead::engine
