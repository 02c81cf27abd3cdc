// Evicts pods of lower priority in the same queue.
//
// Thread-safety: the owner's thread. Complexity: eviction_pass.h.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Preempt final : public Action {
 public:
  // `against_budgets`: only for workloads that PodDisruptionBudgets alone kept from finding victims
  // earlier in the cycle. The API server has the last word on those victims.
  explicit Preempt(bool against_budgets = false) : against_budgets_(against_budgets) {}

  [[nodiscard]] absl::string_view Name() const override {
    return against_budgets_ ? "preempt against budgets" : "preempt";
  }
  [[nodiscard]] bool Evicts() const override { return true; }
  void Execute(CycleContext& context) const override;

 private:
  const bool against_budgets_;
};

}  // namespace fairlead::engine
