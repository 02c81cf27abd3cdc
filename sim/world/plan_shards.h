// Worlds whose program schedules one shard of the cluster: that of the objects without the label
// kai.scheduler/node-pool. The other shard is not scheduled. It has nodes with room, queues, and
// jobs, some of whose pods run from the beginning, also on nodes of the program's shard; and nodes,
// and pods without a PodGroup, go from one to the other.
//
// Thread-safety: pure functions. Determinism: dice of its own.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a seed has them where many families are named.
bool DrawsShards(uint64_t seed);
void AddShards(uint64_t seed, Plan& plan);

}  // namespace fairlead::sim::world
