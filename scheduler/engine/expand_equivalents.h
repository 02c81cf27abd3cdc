// What entries stand for, one workload after the other in the order of their queues. An entry also
// stands for workloads behind it.
//
// Thread-safety: pure over its arguments. Complexity: ExpandEquivalents O(n log equivalence
// classes) for n that wait; RunsInOrder O(entries + runs), and a step of a walk for each workload
// of an entry that others come between.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

// The workloads for which an entry also stands; may be none.
using RestBehind = std::function<MemberRange(const Waiting&)>;

// Entries of a leaf queue come in queue order, and are numbered so.
std::vector<Waiting> ExpandEquivalents(const state::ClusterState& state,
                                       const RestBehind& rest_behind, std::vector<Waiting> waiting);

// The same order without an entry for each workload: runs of workloads that one entry stands for,
// of the entries for which `included` is true. If it is true of an entry, it is of its parts.
std::vector<EntryRun> RunsInOrder(const state::ClusterState& state, const RestBehind& rest_behind,
                                  const std::vector<Waiting>& waiting,
                                  const std::function<bool(const Waiting&)>& included);

}  // namespace fairlead::engine
