// Short ways to write PodDisruptionBudgets in tests. Header only; never part of the product.
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/disruption_budget.h"

namespace fairlead::model::testing {

// Selects pods of namespace "ns" with label app=`app`; empty: all of them.
inline PodDisruptionBudget MakeBudget(absl::string_view name, absl::string_view app,
                                      int64_t allowed) {
  PodDisruptionBudget budget;
  budget.meta.ns = "ns";
  budget.meta.name = std::string(name);
  budget.meta.uid = "uid-budget-" + budget.meta.name;
  budget.meta.generation = budget.observed_generation = 1;
  budget.selector.none = false;
  if (!app.empty()) {
    budget.selector.requirements.push_back({"app", SelectorOperator::kIn, {std::string(app)}});
  }
  budget.disruptions_allowed = allowed;
  return budget;
}

}  // namespace fairlead::model::testing
