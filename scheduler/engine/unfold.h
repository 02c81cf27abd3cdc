// An entry for everybody who waits, out of entries that stand for those behind them too.
// Thread-safety: pure over its arguments. Complexity: O(n log crowds) for n that wait.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

// `rest_behind`: who stands behind an entry, if anybody; to the end of the crowd. Entries of a leaf
// queue come in the order of service, and are numbered so.
std::vector<Waiting> Unfold(const state::ClusterState& state,
                            const std::function<CrowdRest(const Waiting&)>& rest_behind,
                            std::vector<Waiting> waiting);

}  // namespace fairlead::engine
