// Family `capacity`: PodTemplates, CapacityBuffers and ProvisioningRequests that come, change and
// go. All of them are gone before the plan ends, so that what they hold is given back.
//
// Thread-safety: pure functions. Determinism: dice of its own; other families draw what they draw
// without it.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a world of that seed has them if there are many families: one in four with a hook.
bool DrawsCapacity(uint64_t seed);
void AddCapacity(uint64_t seed, Plan& plan);

}  // namespace fairlead::sim::world
