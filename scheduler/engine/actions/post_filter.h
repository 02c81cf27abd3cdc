// Evicts what PostFilter plugins propose (framework/scheduling_points.h), for workloads of profiles
// that have such plugins.
//
// Thread-safety: the owner's thread. Complexity: eviction_pass.h, and a look at each proposal.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class PostFilter final : public Action {
 public:
  // The plugins that are listed before DefaultPreemption, or those behind it.
  enum class Turn : uint8_t { kFirst, kLast };
  // `against_budgets`: as for Preempt.
  PostFilter(Turn turn, bool against_budgets) : turn_(turn), against_budgets_(against_budgets) {}

  [[nodiscard]] absl::string_view Name() const override;
  [[nodiscard]] bool Evicts() const override { return true; }
  void Execute(CycleContext& context) const override;

 private:
  const Turn turn_;
  const bool against_budgets_;
};

}  // namespace fairlead::engine
