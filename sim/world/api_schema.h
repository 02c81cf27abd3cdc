// What our CRDs (crds/*.yaml) refuse in what Fairlead itself writes: required fields, closed lists,
// times, and specs that cannot change.
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

}  // namespace fairlead::sim::world
