// Guaranteed quota that other queues do not lend (queues/lending.h), in one cycle: what a step may
// not take now, what it may be promised on nodes that come up, and what nodes for it would change.
//
// Ownership: borrows its arguments. Thread-safety: the owner's thread. Complexity: nothing where no
// queue keeps anything; Check() O(queues); Upcoming() O(nodes) once.
#pragma once

#include <optional>

#include "queues/lending.h"
#include "queues/tree.h"
#include "scheduler/engine/allocation_tracker.h"
#include "scheduler/engine/outcome.h"
#include "scheduler/engine/topology.h"

namespace fairlead::engine {

class LendingBounds {
 public:
  // `total`: what fair share divides.
  LendingBounds(const state::ClusterState& state, const queues::QueueTree& tree,
                const AllocationTracker& tracker, const model::Resources& total)
      : state_(state), tree_(tree), tracker_(tracker), total_(total) {}

  // Some queue keeps something.
  [[nodiscard]] bool any() const { return tracker_.lending(); }

  // Why the request would take guaranteed quota of other queues; none if it would not.
  [[nodiscard]] std::optional<queues::LendingRefusal> Check(queues::QueueId leaf,
                                                            const model::Resources& request) const {
    return tracker_.CheckLending(leaf, request, total_);
  }

  // The capacity of nodes that are on order or not usable yet.
  struct UpcomingCapacity {
    NodeSetPtr nodes;
    model::Resources total;
  };
  [[nodiscard]] const UpcomingCapacity& Upcoming();
  // The request takes no guaranteed quota once these nodes count too.
  [[nodiscard]] bool FitsUpcoming(queues::QueueId leaf, const model::Resources& request);

  // True, and the outcome says so, if nodes that are bought for the request would not help it
  // either. `demanded`: what is to be bought for others.
  bool HoldsDemand(const model::Resources& demanded, const model::Resources& request,
                   Outcome& outcome);

  // The load by now, for Breaks() later.
  [[nodiscard]] model::Resources Load() const { return tracker_.LendingLoad(); }
  // More is kept or held than there was `before`, and more than there is.
  [[nodiscard]] bool Breaks(const model::Resources& before) const;

  // Names the queue that keeps most of the refused resource idle, of those that the workload is not
  // in.
  void DescribeKeeper(const queues::LendingRefusal& refusal, Outcome& outcome) const;

 private:
  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  const AllocationTracker& tracker_;
  const model::Resources& total_;
  std::optional<UpcomingCapacity> upcoming_;
};

}  // namespace fairlead::engine
