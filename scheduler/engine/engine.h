// The scheduling cycle: which pod goes where, who gives way, and why the rest waits.
//
// One cycle, on the current ClusterState (facts 3.6-3.10 of KAI's rules):
//   1. allocate   in the order of queues and workloads; a gang is placed whole or not at all, its
//                 elastic extras one at a time
//   2. reclaim    for a queue below its fair share, from queues above theirs
//   3. preempt    inside a queue, from lower priorities
//   4. promise    what is left goes, in the same order, to nodes that are ordered or being emptied
//   5. demand     what is still left and no policy holds: the hook may buy for it
// Decisions of 1 stay in the state as assumed (kBinding); victims of 2 and 3 as kReleasing; promises of
// 4 and demand of 5 are taken back at the end of the cycle, so that the next one orders afresh.
//
// Why something waits is found as a by-product, and worded elsewhere (scheduler/verdict).
//
// Ownership: borrows the state and the tree. Thread-safety: the state's owner thread.
// Determinism: same state, same result; every search is bounded in work units, and what a bound left
// undone is said in the verdict.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "queues/tree.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::engine {

struct EngineOptions {
  bool reclaim = true;
  bool preempt = true;
  bool hook_on = true;
  // Victims tried in one search for one workload before it gives up and says so.
  int64_t max_victims_per_search = 512;
  // Filter evaluations that all searches of one cycle may spend.
  int64_t max_search_work = 20'000'000;
  // Between two attempts of a workload whose binding failed.
  absl::Duration bind_backoff_initial = absl::Seconds(1);
  absl::Duration bind_backoff_max = absl::Seconds(60);
};

struct Binding {
  state::PodId pod;
  state::NodeId node;
};

struct Eviction {
  state::PodId pod;
  std::string action;  // "reclaim", "preempt"
  std::string for_workload;  // "namespace/name"
  std::string message;
};

// A workload that still lacks something after the cycle.
struct Waiting {
  state::WorkloadId workload = state::kNoId;
  verdict::Verdict verdict;
  // The pods that wait, in task order; a promise names the node, kNoId for none.
  struct PodPromise {
    state::PodId pod;
    state::NodeId node = state::kNoId;
  };
  std::vector<PodPromise> pods;
  // True: verdict.demand is what the hook may buy for (I1, I2 hold for all such entries together, in
  // this order).
  bool wants_nodes = false;
};

struct CycleResult {
  std::vector<Binding> bindings;
  std::vector<Eviction> evictions;
  std::vector<Waiting> waiting;  // in the order of service
  // When a cycle could decide something new although nothing changed; infinite future if never.
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t work = 0;  // filter evaluations
};

// One queue's numbers as the last cycle saw them.
struct QueueNumbers {
  queues::QueueId queue;
  model::Resources allocated, allocated_non_preemptible, requested, fair_share;
  int64_t waiting_workloads = 0;
};

class Engine final : public state::AllocationListener {
 public:
  // Becomes the listener of the state. The framework is shared by all our scheduler names for now.
  Engine(EngineOptions options, state::ClusterState* state, queues::QueueTree* tree,
         std::unique_ptr<framework::Framework> framework);
  ~Engine() override;

  CycleResult RunCycle(absl::Time now);

  // A binding failed: the pod waits again, not before its back-off ends.
  void OnBindFailed(state::PodId pod, absl::Time now);
  // The tree changed: the ledger is counted anew.
  void OnQueuesChanged();

  [[nodiscard]] std::vector<QueueNumbers> Numbers() const;

  // How many pods of the class fit on an empty node like this beside `already`; at most `limit`.
  struct Load {
    std::shared_ptr<const model::PodSpec> spec;
    int64_t count = 0;
  };
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit);

  // Recount of the ledger from the state; the first difference, or empty. For tests and the simulator.
  [[nodiscard]] std::string CheckConsistency() const;

  // state::AllocationListener
  void OnAllocated(const state::Workload& workload, const state::PodRecord& pod) override;
  void OnReleased(const state::Workload& workload, const state::PodRecord& pod) override;
  void OnWorkloadChanged(const state::Workload& workload) override;
  void OnWorkloadRemoved(const state::Workload& workload) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::engine
