// From what a cycle found out to the verdict that is told: numbers, unblockers, demand.
// Thread-safety: the owner's thread.
#pragma once

#include "scheduler/engine/cycle.h"
#include "scheduler/engine/diagnosis.h"

namespace fairlead::engine {

Waiting MakeWaiting(const state::ClusterState& state, const queues::QueueTree& tree,
                    Diagnoser& diagnoser, bool hook_on, const Outcome& outcome);

}  // namespace fairlead::engine
