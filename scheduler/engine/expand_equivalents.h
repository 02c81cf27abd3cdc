// Makes an entry for each waiting workload out of entries that also stand for workloads behind
// them. Thread-safety: pure over its arguments. Complexity: O(n log equivalence classes) for n that
// wait.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

// `rest_behind`: the workloads for which an entry also stands; may be none.
// Entries of a leaf queue come in queue order, and are numbered so.
std::vector<Waiting> ExpandEquivalents(
    const state::ClusterState& state, const std::function<MemberRange(const Waiting&)>& rest_behind,
    std::vector<Waiting> waiting);

}  // namespace fairlead::engine
