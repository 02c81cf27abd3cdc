// What our CRDs (crds/*.yaml) refuse in what Fairlead itself writes: required fields, closed lists,
// times, amounts, and specs that cannot change; and what they drop of it.
//
// Thread-safety: pure functions. Complexity: O(fields checked).
#pragma once

#include <vector>

#include "sim/world/api_error.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

// Appends what is wrong with the object of a custom type. `old` is null for a new object; a status
// that has not changed is not looked at.
void CheckSchema(const ResourceRow& row, const Json* old, const Json& object,
                 std::vector<InvalidField>& out);

// Drops unknown fields of the status, where something else than Fairlead has a schema for it: of a
// Queue, and of the counts of a PodGroup.
void PruneStatus(const ResourceRow& row, Json& object);

}  // namespace fairlead::sim::world
