// How many pods of a class fit on an empty node: for the planner's hypothetical nodes.
//
// Resources by arithmetic, everything else by the same filters as a real placement; a class that
// keeps away from itself on one node (host ports, anti-affinity by host name) counts once.
//
// Thread-safety: the owner's thread. Complexity: O(resources + filters).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

int64_t CountThatFit(
    state::ClusterState& state, const framework::Framework& framework, const model::Node& node,
    const std::vector<std::pair<std::shared_ptr<const model::PodSpec>, int64_t>>& already,
    const std::shared_ptr<const model::PodSpec>& spec, int64_t limit);

}  // namespace fairlead::engine
