// Handles into ClusterState's tables. Dense, reused after removal: never kept across events.
#pragma once

#include <cstdint>

namespace fairlead::state {

using NodeId = uint32_t;
using PodId = uint32_t;
using WorkloadId = uint32_t;
using PodClassId = uint32_t;
using TopologyId = uint32_t;
using ClaimId = uint32_t;
using PriorityClassId = uint32_t;
// Never used again.
using BudgetId = uint32_t;
inline constexpr uint32_t kNoId = 0xffffffffu;

}  // namespace fairlead::state
