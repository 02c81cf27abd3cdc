// Moves running pods together so that a waiting preemptible workload fits. Every victim has a new
// place, and has run for the minimum runtime (move_history.h); nothing is taken from any queue.
//
// Thread-safety: the owner's thread. Complexity: eviction_pass.h; O(nodes) for what is free in sum,
// once and after each success.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Consolidate final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "consolidation"; }
  [[nodiscard]] bool Evicts() const override { return true; }
  void Execute(CycleContext& context) const override;
};

}  // namespace fairlead::engine
