// One action of a scheduling cycle (KAI's term). A cycle executes a list of actions in order; what
// the configuration switches off is not in the list.
//
// An action has no state of its own from one cycle to the next: what persists is in the inputs of
// the context, above all the search budget.
//
// Thread-safety: the owner's thread.
#pragma once

#include "absl/strings/string_view.h"
#include "scheduler/engine/cycle_context.h"

namespace fairlead::engine {

class Action {
 public:
  virtual ~Action() = default;
  // As the configuration and KAI name it. Static storage.
  [[nodiscard]] virtual absl::string_view Name() const = 0;
  // It evicts pods: left out of cycles that may not, and within the search budget.
  [[nodiscard]] virtual bool Evicts() const { return false; }
  virtual void Execute(CycleContext& context) const = 0;
};

}  // namespace fairlead::engine
