// Evicts pods of queues above their fair share for workloads of queues below theirs.
//
// Thread-safety: the owner's thread. Complexity: eviction_pass.h.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Reclaim final : public Action {
 public:
  // `against_budgets`: as for Preempt.
  explicit Reclaim(bool against_budgets = false) : against_budgets_(against_budgets) {}

  [[nodiscard]] absl::string_view Name() const override {
    return against_budgets_ ? "reclaim against budgets" : "reclaim";
  }
  [[nodiscard]] bool Evicts() const override { return true; }
  void Execute(CycleContext& context) const override;

 private:
  const bool against_budgets_;
};

}  // namespace fairlead::engine
