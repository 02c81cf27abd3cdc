// What preemption reads, for a random world: priorities and starts of pods, and budgets.
//
// No pod terminates, since Fairlead gives out the room of those that do, and every pod of a budget
// runs and is ready, since the eviction API lets others go whatever the budget says. A pod is of
// one budget at most: the API evicts no pod of several. No two pods started at once, so that it is
// certain which of them goes first. On a node one pod at most has ports of the host, and one pod at
// most has a claim of the name of one that is ReadWriteOncePod.
//
// Thread-safety: none. Determinism: by the dice.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/differential/dice.h"

namespace fairlead::differential {

using Json = nlohmann::json;

void AddPreemption(Dice& dice, Json& world);

}  // namespace fairlead::differential
