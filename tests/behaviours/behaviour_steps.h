// Reads the `steps` of a behaviour's first document (behaviour.h).
// Errors: as behaviour.h. Thread-safety: pure functions.
#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "document/fields.h"
#include "document/json.h"
#include "tests/behaviours/behaviour.h"

namespace fairlead::behaviours {

// Every object that a step names must have a manifest, and every manifest must be applied.
absl::StatusOr<std::vector<Step>> ReadSteps(const FieldReader& reader, const Json& steps,
                                            const std::map<ObjectRef, Json>& manifests);

}  // namespace fairlead::behaviours
