// Evicts what is left of a gang, or of one of its sub-groups, that has been below its minimum for
// longer than the grace period of the gang; records when it begins or ceases to be.
//
// A sub-group whose gang has its minimum without it is evicted alone, and so is the topmost of
// several nested ones that are below their minimum. If the gang lacks its minimum, its sub-groups
// wait for the gang's grace period. (KAI keeps such a sub-group for ever: it looks at the gang
// alone, though it starts sub-groups as units.)
//
// Thread-safety: the owner's thread. Complexity: O(gangs that are or were below a minimum).
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
