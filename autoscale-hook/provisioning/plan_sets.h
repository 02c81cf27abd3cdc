// Which machines of a plan are ordered together (machines/launch_set.h).
//
// The nodes of an all-or-nothing item are an atomic set. Items that share a node are in one set: if
// one of them cannot be had, the node must not be given back under the other, so all are planned
// again. The nodes that serve no such item are one set that is not atomic.
//
// Thread-safety: pure functions. Deterministic: sets and their members are in the order of the
// plan's nodes.
#pragma once

#include <functional>
#include <vector>

#include "autoscale-hook/planner/planner.h"
#include "base/derived_names.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// `requests`: of the plan's nodes, in their order, with their names. `is_whole`: whether the item
// of an outcome with nodes is all or nothing. O(nodes x items of a node).
void MarkPlanSets(const Plan& plan, const std::function<bool(size_t outcome)>& is_whole,
                  std::vector<model::NodeRequest>& requests, DerivedNames* names = nullptr);

}  // namespace fairlead::hook
