// Worlds whose program groups pods by the objects that own them (`grouping`), and so suspends Jobs
// instead of evicting their pods. Jobs that another part of the plan has drawn get an owner, and
// more come: those of high priority take the place of others. Some controllers look at
// spec.suspend late, or never; users suspend Jobs themselves; what is read of Jobs, or written to
// them, may be refused for a while.
//
// Thread-safety: pure functions. Determinism: dice of its own.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a seed has them where many families are named.
bool DrawsOwners(uint64_t seed);
// Of all operations that were drawn so far. `corners`: with faults of its own.
void AddOwners(uint64_t seed, bool corners, Plan& plan);

}  // namespace fairlead::sim::world
