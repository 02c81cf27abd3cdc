// Gives waiting workloads places, in queue order: a gang whole or not at all, what is above its
// minimum one unit at a time. A step that only fits capacity that is being released or comes up is
// promised that capacity. Preemptors come before all others (preemptors.h).
//
// A promise counts against limits, so that what is bought for a workload is not taken from it by
// those behind it. A promise on a node that is later than expected counts last: what can start
// does, and the promise is taken back if it would then exceed a limit.
//
// QueueUp takes the place of Allocate where allocation is switched off: every workload waits, and
// what it asks for is what later actions may evict for.
//
// Thread-safety: the owner's thread. Complexity: O(log n) a turn and what a placement costs
// (placer.h); a kind of step that found no place is not tried again in the cycle.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Allocate final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "allocate"; }
  void Execute(CycleContext& context) const override;
};

class QueueUp final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "queue up"; }
  void Execute(CycleContext& context) const override;
};

}  // namespace fairlead::engine
