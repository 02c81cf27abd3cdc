// Jobs whose pods another scheduler binds, to nodes that the program grants (guest_scheduler.h).
//
// Thread-safety: pure functions. Determinism: dice of their own, so that what else there is in a
// world stays the same with them.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a world has guests where many families are named: one in six.
bool DrawsGuests(uint64_t seed);
// Gives some of the plan's jobs to guests.
void AddGuests(uint64_t seed, Plan& plan);

// Whether some job is of guests.
bool HasGuests(const Plan& plan);

}  // namespace fairlead::sim::world
