// Worlds whose program writes the statuses of Queues and PodGroups that KAI's controllers write
// (`kaiStatus`). With few families named also what makes these numbers wrong: queues that get
// another parent, or are made again under their name; groups that go to another queue; another
// writer of the same fields; writes of them that are refused, or have no answer.
//
// Thread-safety: pure functions. Determinism: dice of its own.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a seed has them where many families are named.
bool DrawsKaiStatus(uint64_t seed);
// `corners`: with what makes the numbers wrong.
void AddKaiStatus(uint64_t seed, bool corners, Plan& plan);

}  // namespace fairlead::sim::world
