// What nodes could be bought for: workloads that lack nothing but capacity, as far as every limit
// above them allows, in queue order.
//
// Each step is charged to its queues as if it ran, so that later ones see what is left; the charges
// are released before Execute() returns. What fits under all limits is demand
// (Outcome::demanded); what does not has the limit as its code.
//
// Thread-safety: the owner's thread. Complexity: O(n depth) for n outcomes; equivalent workloads
// behind one are charged in sum where no limit is near and the hook is off; O(nodes) once for each
// class of pods that wait.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Demand final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "demand"; }
  void Execute(CycleContext& context) const override;
};

}  // namespace fairlead::engine
