// Preempt, wait or buy. A queue may prefer new nodes to evictions for what it holds above its
// quota (Engine::SetOverQuota). Then a workload that would be above the quota of its leaf queue
// evicts nothing while nodes can be had for it: some node on offer would take each of its pods, and
// the autoscaler has not found its kind of demand unservable (a cap, a stock-out, a back-off, or
// nothing that suits it). Within guaranteed quota no workload waits for nodes; and what a limit of
// a queue holds, no node would help.
//
// A queue that weighs evicts if that wastes no more money than new nodes. Evictions waste what the
// victims have done since they started; nodes waste the time for which they are paid and do no work
// (model::OfferedNode::unused). Both are priced alike: a pod costs its part of the cheapest node on
// offer that holds it, by that resource of which it takes the largest part. A victim that no node
// on offer could hold is worth more than any node. What runs and could go on from a checkpoint is
// not known, and counts as lost.
//
// The autoscaler's word is of the last cycle at the earliest: a workload that is new waits until it
// has been asked, which is in the same step.
//
// Ownership: borrows the cycle's inputs. Thread-safety: the owner's thread. Complexity: O(nodes on
// offer) filters for each class of pods once, then O(resources + pods of the step).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
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

  // Whatever pods could be evicted.
  [[nodiscard]] bool Prefers(const Outcome& outcome) {
    return MayPrefer(outcome, OverQuota::kBuyNodes);
  }
  // It depends on what would be evicted. Ask before victims are sought: a search changes what the
  // queue holds.
  [[nodiscard]] bool Weighs(const Outcome& outcome) {
    return MayPrefer(outcome, OverQuota::kWeigh);
  }
  // Of one that weighs: the end of these pods, which run, wastes more than new nodes. What those
  // waste, in millionths of a dollar.
  [[nodiscard]] std::optional<int64_t> PrefersTo(const Outcome& outcome,
                                                 const std::vector<state::PodId>& victims);

 private:
  // Of a pod, on the cheapest node on offer that holds it.
  struct Price {
    int64_t micro_usd_per_hour;
    absl::Duration unused;
  };
  [[nodiscard]] bool MayPrefer(const Outcome& outcome, OverQuota policy);
  [[nodiscard]] bool IsAboveQuota(const Outcome& outcome) const;
  [[nodiscard]] bool CanBeHad(const Outcome& outcome);
  [[nodiscard]] std::optional<Price> PriceOf(state::PodId pod);
  // Of the time since it started.
  [[nodiscard]] absl::Duration Ran(const state::PodRecord& pod) const;

  const CycleInputs& in_;
  std::map<state::PodClassId, bool> on_offer_;
  std::map<state::PodClassId, std::optional<Price>> prices_;
};

}  // namespace fairlead::engine
