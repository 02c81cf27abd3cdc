// Family `pools`: NodePools that come, change, are wrong for a while, go and come again under the
// same name, and jobs whose pods select or tolerate the nodes of some of them.
//
// Thread-safety: pure functions. Determinism: dice of its own; other families draw what they draw
// without it.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a world of that seed has them if there are many families: one in five with a hook.
bool DrawsPools(uint64_t seed);
// `always`: the world gets a hook, and room under its caps.
void AddPools(uint64_t seed, bool always, Plan& plan);

}  // namespace fairlead::sim::world
