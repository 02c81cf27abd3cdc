// What becomes of the victims that a search has chosen: evictions, promises that change, and
// bindings of this cycle that are withdrawn.
//
// Thread-safety: the owner's thread. Complexity: O(victims), and O(bindings) for each withdrawn
// one.
#pragma once

#include <vector>

#include "queues/ledger.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/engine/cycle_context.h"

namespace fairlead::engine {

// Records victims that were evicted for the outcome. Returns those whose binding this cycle has
// decided itself: WithdrawBindings() has to be given them. `before`: the ledger before anything was
// evicted.
std::vector<Victim> RecordVictims(CycleContext& context, const EvictionPolicy& policy,
                                  const Outcome& outcome, const queues::QueueLedger& before,
                                  const std::vector<Victim>& victims);

// The pods wait again, with an outcome of their own; their places went to `winner`. May add rows to
// the table of outcomes.
void WithdrawBindings(CycleContext& context, const std::vector<Victim>& victims,
                      state::WorkloadId winner);

}  // namespace fairlead::engine
