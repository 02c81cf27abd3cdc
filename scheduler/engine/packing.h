// The second attempt to place the pods of a gang that are not alike. The first one gives every pod
// the node that is best for it, in task order; a pod that fits in many places may then stand where
// alone another one would have fitted. Of like pods each takes one place of as many as there are,
// so for them the first attempt is exact.
//
// Every way to put the pods on the nodes is tried, hardest pods first (fewest nodes, then largest),
// until one is found or the bound is reached. Pods of one class are interchangeable: they take
// their nodes in the order of the candidates.
//
// Thread-safety: the owner's thread. Complexity: at most `tries` placements and as many undone.
// Determinism: ties in the order of the step.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

// Pods of one class, and the nodes on which one of them fits as things are, best first.
struct PackingClass {
  std::vector<state::PodId> pods;
  std::vector<state::NodeId> nodes;
};

// Where the search ended.
enum class PackingEnd : uint8_t {
  kFound,    // all pods have a place, in the transaction
  kNone,     // there is no way; the transaction is as it was
  kGivenUp,  // the bound was reached; nothing was placed
};

// `place` puts a pod on a node in `txn`, if it fits there beside what is placed already.
// `tries` is how often it may be asked, and what is left of that afterwards.
PackingEnd Pack(state::Transaction& txn, std::vector<PackingClass> classes,
                absl::FunctionRef<bool(state::PodId, state::NodeId)> place, int64_t& tries);

// The pods by class, in the order of their first pods.
std::vector<PackingClass> ByClass(const state::ClusterState& state,
                                  const std::vector<state::PodId>& pods);

// Largest first (model::IsLarger); in the given order among equals.
void SortBySize(const state::ClusterState& state, std::vector<state::PodId>& pods);

}  // namespace fairlead::engine
