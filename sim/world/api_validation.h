// What the API server refuses (422) in what clients write. Actors are not checked: they may do what
// no server lets through.
//
// Thread-safety: pure functions. Complexity: O(metadata), and the size of the parts checked.
#pragma once

#include "sim/world/api_error.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

// Names, labels and annotations; fields of events, leases and config maps; the status of a claim;
// what the CRDs say (api_schema.h).
// `old` is null for a new object; metadata that has not changed is not looked at.
ApiError CheckFields(const ResourceRow& row, const Json* old, const Json& object);

}  // namespace fairlead::sim::world
