// From what a cycle found out to the verdict that is told: numbers, unblockers, demand.
// Thread-safety: the owner's thread.
#pragma once

#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/engine/diagnosis.h"
#include "scheduler/engine/outcome.h"

namespace fairlead::engine {

// `ledger`: as it is after the cycle, without its promises and its demand.
Waiting MakeWaiting(const state::ClusterState& state, const queues::QueueTree& tree,
                    const queues::QueueLedger& ledger, Diagnoser& diagnoser, bool hook_on,
                    const Outcome& outcome);

}  // namespace fairlead::engine
