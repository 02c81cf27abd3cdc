// Family `devices`: devices of dynamic resource allocation on the nodes, jobs whose pods have
// claims or request an extended resource that a class gives, and what people, drivers and webhooks
// do to them.
//
// Pods with shared claims are not preemptible: what evicts them evicts them again and again
// (docs/known-issues.md).
//
// Its corners, in worlds for which few families are named; a world has at most one of each line:
//
//   more selectors than the program knows at once, one after the other, over the whole world
//   a claim of GPUs that its pod may not use from the queue of its PodGroup; then the group is
//   deleted, and another one of its name belongs to the queue of the claim
//   a gang with a claim of which every write is refused, beside pods that want the gang's devices
//
// Thread-safety: pure functions. Determinism: dice of its own; same seed and plan, same operations,
// and other families draw what they draw without it.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a world of that seed has devices if there are many families.
bool DrawsDevices(uint64_t seed);
void AddDevices(uint64_t seed, bool corners, Plan& plan);

}  // namespace fairlead::sim::world
