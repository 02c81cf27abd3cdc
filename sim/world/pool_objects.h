// NodePool objects, made of fields of an operation:
//
//   name, types, zones ("gpu1,gpu8"), max, weight, spot: 1
//   tier        value of label kTierLabel
//   label_zone  value of the label of the zone, whatever zone the node is in
//   taint       effect of taint kPoolTaintKey; startup: 1: a startup taint
//   policy, after, budget, budget_reason   spec.disruption
//   wrong       what is wrong with it, and the API schema lets pass: provider | after | schedule |
//               sharing
//
// Thread-safety: pure functions.
#pragma once

#include "sim/world/json.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

inline constexpr char kTierLabel[] = "pool.example.com/tier";
inline constexpr char kPoolTaintKey[] = "pool.example.com/only";
inline constexpr char kStartupTaintKey[] = "pool.example.com/startup";

Json MakePool(const Operation& fields);

}  // namespace fairlead::sim::world
