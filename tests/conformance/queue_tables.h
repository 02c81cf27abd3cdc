// KAI's tables about queues: fair-share divisions, rights to reclaim, limits and quotas. Runs them
// through the functions of queues/ that decide them; used by the conformance program and by the
// unit tests of that module.
//
// Amounts of the tables: GPUs in devices, CPU in milli-CPU, memory in bytes; -1 is unlimited.
// Thread-safety: pure functions. Errors: InvalidArgument with the path of a malformed field.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/json.h"

namespace fairlead::conformance {

// True if these functions can run a case of this form.
bool IsFairShareCase(const Json& test);   // has "operation"
bool IsQueueCheckCase(const Json& test);  // has "check"

// One line per difference; empty: the case passes.
absl::StatusOr<std::vector<std::string>> RunFairShareCase(const Json& test);
// canReclaimResources, reclaimable; any other check is one of limits.
absl::StatusOr<std::vector<std::string>> RunQueueCheckCase(const Json& test);

}  // namespace fairlead::conformance
