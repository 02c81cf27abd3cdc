// Preemptors: workloads that pods were evicted for, until they run. What the evictions free is
// theirs.
//
// A promise lasts for one cycle, so queue order alone decides which pod gets what victims leave.
// Pods that controllers create in the victims' stead may come first in that order, by the priority
// of their queue or because the head of the preemptor's queue requests too much: then they take the
// freed capacity, and the headroom below limits, one by one; the preemptor has more pods evicted;
// and so on without end.
//
// So every cycle serves preemptors before all other workloads of all queues, in the order of the
// decisions (actions/allocate.h). A workload ceases to be a preemptor when
//   - the step that pods were evicted for is bound;
//   - the step, or a smaller one, is not placed when it is served: another workload has the
//     capacity, a limit was lowered, an eviction was refused, its binding failed;
//   - kHeldFor has passed since the decision, and since the last of its victims went.
// From then on it waits in queue order.
//
// Not kept over a restart.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(preemptors and
// their victims that have not gone) a cycle. Determinism: in the order of the decisions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

struct Preemptor {
  state::WorkloadId workload = state::kNoId;
  std::string uid;
  queues::QueueId leaf = 0;
  model::Resources request;  // of the step; a larger one is not served
};

class Preemptors {
 public:
  static constexpr absl::Duration kHeldFor = absl::Minutes(10);

  explicit Preemptors(const state::ClusterState& state) : state_(state) {}

  // A cycle begins. Returns the workloads that have become preemptors since the last call, and
  // those that have ceased to be, which may be gone.
  std::vector<state::WorkloadId> Begin(absl::Time now);
  [[nodiscard]] bool Contains(state::WorkloadId workload) const;
  // `serve` places the preemptor's step; false: it is a preemptor no longer.
  void Serve(absl::FunctionRef<bool(const Preemptor&)> serve);
  // Pods were evicted for the workload, or bindings of this cycle were taken back for it. One that
  // is a preemptor already keeps its turn.
  void Add(Preemptor preemptor, const std::vector<state::PodId>& victims, absl::Time now);
  // When the next one ceases to be one by time.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  struct Row {
    Preemptor preemptor;
    std::vector<std::pair<state::PodId, std::string>> victims;  // with their uids
    absl::Time until;
  };
  [[nodiscard]] bool Waits(const Preemptor& preemptor) const;

  const state::ClusterState& state_;
  std::vector<Row> rows_;  // in the order of the decisions
  std::vector<state::WorkloadId> changed_;
};

}  // namespace fairlead::engine
