// What the queues are charged with, kept in step with ClusterState: allocations as they happen,
// requests when a workload changes.
//
// Ownership: borrows state and tree. Thread-safety: the owner's thread. Complexity: O(depth) a change;
// Recount O(pods).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class Books {
 public:
  Books(const state::ClusterState& state, const queues::QueueTree& tree);

  void OnAllocated(const state::Workload& workload, const state::PodRecord& pod);
  void OnReleased(const state::Workload& workload, const state::PodRecord& pod);
  void OnWorkloadRemoved(const state::Workload& workload);
  // Counts again what the workload asks for: its pods that run or wait without a gate.
  void RefreshRequested(const state::Workload& workload);
  // From nothing; after queues appeared or moved.
  void Recount();
  [[nodiscard]] bool RecountNeeded() const { return shape_version_ != tree_.shape_version(); }

  [[nodiscard]] const queues::QueueLedger& ledger() const { return ledger_; }
  // For demand that has no pod on any node; the caller takes it back.
  [[nodiscard]] queues::QueueLedger& mutable_ledger() { return ledger_; }

  // The first difference to a count from nothing, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  static constexpr queues::QueueId kNoQueue = ~queues::QueueId{0};
  struct Requested {
    queues::QueueId queue = kNoQueue;
    model::Resources amount;
  };
  struct Charged {
    queues::QueueId queue = kNoQueue;
    bool preemptible = true;
    int64_t gpu_milli = 0;  // of a share by memory it depends on the node that it has left meanwhile
  };

  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  queues::QueueLedger ledger_;
  uint64_t shape_version_;
  std::vector<Charged> charged_;      // by PodId
  std::vector<Requested> requested_;  // by WorkloadId
};

}  // namespace fairlead::engine
