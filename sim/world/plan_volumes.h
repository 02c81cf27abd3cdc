// Family `volumes`: storage classes, jobs whose pods have claims of volumes, and what people and
// provisioners do to them.
//
// Its corners, in worlds for which few families are named; a world has at most one of each line:
//
//   two gangs, each of which needs most of the volumes of one host
//   a gang with a claim whose node may not be selected, beside pods that want its room
//   pods of one StatefulSet that are deleted again and again while their zone is full
//   a provisioner that is silent for longer than anything else lasts, then refuses
//   more pods than a node may have volumes attached
//
// Thread-safety: pure functions. Determinism: dice of its own; same seed and plan, same operations,
// and other families draw what they draw without it.
#pragma once

#include <cstdint>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Whether a world of that seed has volumes if there are many families.
bool DrawsVolumes(uint64_t seed);
void AddVolumeWork(uint64_t seed, bool corners, Plan& plan);

}  // namespace fairlead::sim::world
