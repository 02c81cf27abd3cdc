// How many nodes of each pool may go out of service now: spec.disruption of NodePools, with the
// configuration in its place where a pool says nothing. A node counts as out of service from the
// decision (its taint is wanted, or it is being emptied) until its machine is gone. Nodes that are
// lost, deleted by users, or taken back by the cloud count too, but no budget holds them.
//
// Thread-safety: none; lives for one step. Complexity: O(machines that are not steady) once,
// O(budgets) per question.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "autoscale-hook/machines/step_context.h"
#include "scheduler/model/disruption.h"

namespace fairlead::hook {

// Out of service, or on its way out.
[[nodiscard]] bool IsDisrupted(const MachineView& view);

class DisruptionBudgets {
 public:
  explicit DisruptionBudgets(StepContext& context);

  [[nodiscard]] model::ConsolidationPolicy PolicyOf(const std::string& pool) const;
  // How long a node of the pool is empty, or could be emptied, before it is.
  [[nodiscard]] absl::Duration WaitOf(const std::string& pool) const;
  // One node more may go. If a schedule forbids it, the step is repeated in the next minute.
  [[nodiscard]] bool Allows(const std::string& pool, model::DisruptionReason reason);
  void Take(const std::string& pool) { ++counts_[pool].disrupted; }

 private:
  struct Count {
    int64_t nodes = 0, disrupted = 0;
  };
  // Null: it does not exist any more.
  [[nodiscard]] const model::Disruption* OfPool(const std::string& pool) const;

  StepContext& context_;
  std::map<std::string, Count> counts_;
};

}  // namespace fairlead::hook
