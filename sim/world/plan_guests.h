// Jobs whose pods another scheduler binds, to nodes that the program grants (guest_scheduler.h).
//
// Thread-safety: pure functions. Determinism: dice of their own, so that what else there is in a
// world stays the same with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Gives some of the plan's jobs to guests, if the family is among these: of a few families always,
// else in one world of six.
void AddGuests(uint64_t seed, const std::vector<std::string>& families, Plan& plan);

// Whether some job is of guests.
bool HasGuests(const Plan& plan);

}  // namespace fairlead::sim::world
