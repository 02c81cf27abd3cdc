// Preempt, wait or buy. A queue may prefer new nodes to evictions for what it holds above its
// quota (Engine::SetBuysFirst). Then a workload that would be above the quota of its leaf queue
// evicts nothing while nodes can be had for it: some node on offer would take each of its pods, and
// the autoscaler has not found its kind of demand unservable (a cap, a stock-out, a back-off, or
// nothing that suits it). Within guaranteed quota no workload waits for nodes; and what a limit of
// a queue holds, no node would help.
//
// The autoscaler's word is of the last cycle at the earliest: a workload that is new waits until it
// has been asked, which is in the same step.
//
// Ownership: borrows the cycle's inputs. Thread-safety: the owner's thread. Complexity: O(nodes on
// offer) filters for each class of pods once, then O(resources + pods of the step).
#pragma once

#include <cstdint>
#include <map>

#include "scheduler/engine/cycle_context.h"
#include "scheduler/engine/outcome.h"

namespace fairlead::engine {

// Waiting::demand_kind. No other demand ever has the same, although ids are reused.
[[nodiscard]] uint64_t KindOfDemand(const state::ClusterState& state, const Outcome& outcome);

// Some node on offer would take such a pod if it were empty. O(nodes on offer) filters
[[nodiscard]] bool FitsSomeOffer(const CycleInputs& in, state::PodClassId pod_class);

class Buying {
 public:
  explicit Buying(const CycleInputs& in) : in_(in) {}

  [[nodiscard]] bool Prefers(const Outcome& outcome);

 private:
  [[nodiscard]] bool IsAboveQuota(const Outcome& outcome) const;
  [[nodiscard]] bool CanBeHad(const Outcome& outcome);

  const CycleInputs& in_;
  std::map<state::PodClassId, bool> on_offer_;
};

}  // namespace fairlead::engine
