// What other ways to choose nodes pay for a demand, on the same types at the same prices. Each is
// written here from its published description; none is the other program's code.
//
// Pods fit on a node by CPU, memory, number of pods, whole GPUs and shares of GPUs (a share goes
// onto the fullest device that has room for it).
// Units: micro-dollars per hour. Thread-safety: pure. Deterministic.
#pragma once

#include <cstdint>

#include "tests/bench/plan_demands.h"

namespace fairlead::bench {

// The cheapest instance for each pod, with no second pod on it.
int64_t OneInstancePerPod(const CostDemand& demand);

// As cluster-autoscaler expands (facts 2.1): first fit decreasing of all waiting pods on nodes of
// one group alone, for every group; the group with the lowest price, in relation to what the pods
// that it serves cost alone, is bought; the rest of the pods is tried again.
int64_t OneNodeGroupAtATime(const CostDemand& demand);

// Karpenter's packing (re-implemented; facts 3.3): pods by CPU, then memory, descending; each goes
// onto the first planned node that has a type left which holds it too, else onto a new one; the
// set of types of a node shrinks with its pods, and in the end the cheapest that is left is bought.
int64_t KarpenterPacking(const CostDemand& demand);

}  // namespace fairlead::bench
