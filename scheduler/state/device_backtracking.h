// The answer of device_choice.h where a matching is not enough: partitions that use counters,
// attributes with distinct values, and admin access.
//
// How: for one choice of options after another, in lexicographic order over all requests, devices
// are tried depth first, request by request and ascending, as upstream's allocator does
// (k8s.io/dynamic-resource-allocation/structured). Devices that nothing in the question tells apart
// are tried once for a place: the others would fail as the first did.
//
// Thread-safety: pure functions. Complexity: O(max_work); a step is a device or a choice of options
// that is looked at. Determinism: indices decide all ties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/state/device_choice.h"

namespace fairlead::state {

// Does an option have admin access or devices that use counters, or a constraint distinct values?
bool NeedsBacktracking(const std::vector<ChoiceClaim>& claims, const ChoiceCounters& counters);

DeviceChoice ChooseByBacktracking(size_t device_count, const std::vector<ChoiceClaim>& claims,
                                  const ChoiceCounters& counters, int64_t max_work);

}  // namespace fairlead::state
