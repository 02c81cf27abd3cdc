// What the planner pays for a demand, beside the bound and beside what others pay.
// Thread-safety: none. Errors: Require, if the plan does not serve every pod.
#pragma once

#include <cstdint>

#include "tests/bench/plan_demands.h"

namespace fairlead::bench {

struct PlanCost {
  int64_t cost = 0;  // micro-dollars per hour
  int64_t nodes = 0;
  double milliseconds = 0;
  int64_t questions = 0;  // that the planner put to the scheduler
};

// The plan on an empty cluster, where the scheduler's own filters say what fits. Every planned node
// is checked against its type's amounts, and every pod has to have a place.
PlanCost CostOfPlan(const CostDemand& demand);

// The bound of the demand, with an effort that depends on its size; see `stop_at`.
PackingBound BoundOf(const CostDemand& demand, int64_t stop_at);

}  // namespace fairlead::bench
