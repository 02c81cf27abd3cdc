// One scheduling cycle: the actions, in order, over one context (engine.h says what each does).
//
// Ownership: a list of actions lives as long as its engine; the context lives for one cycle.
// Thread-safety: the owner's thread.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/engine/actions/action.h"
#include "scheduler/engine/cycle_context.h"

namespace fairlead::engine {

using Actions = std::vector<std::unique_ptr<const Action>>;

// The actions that the options switch on, in KAI's order.
Actions MakeActions(const EngineOptions& options, bool post_filters = false);

// Executes the actions; `may_evict` false: without those that evict. Afterwards promises and demand
// are taken back, so that the next cycle places afresh, outcomes have their positions, and what is
// still unmet has been told to the reservations.
void RunCycle(const Actions& actions, bool may_evict, CycleContext& context);

}  // namespace fairlead::engine
