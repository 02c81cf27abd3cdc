// Evicts what is left of a gang that has been below its minimum for longer than its grace period,
// and records when a gang begins or ceases to be.
//
// Thread-safety: the owner's thread. Complexity: O(gangs that are or were below their minimum).
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class StaleGangEviction final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "stalegangeviction"; }
  [[nodiscard]] bool Evicts() const override { return true; }
  void Execute(CycleContext& context) const override;
};

}  // namespace fairlead::engine
