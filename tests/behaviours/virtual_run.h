// Plays a behaviour in virtual time: the decision loop of `fairlead run` in a simulated cluster
// (sim/simulator.h), whose invariants are checked after every decision.
//
// The objects of the first step exist before the loop decides. A step ends when nothing has been
// decided for a while.
// Thread-safety: none. Determinism: same file, same result.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/behaviours/behaviour.h"

namespace fairlead::behaviours {

// What the scheduler hears first of a write of its own: both happen on a real API server.
enum class HeardFirst { kAnswer, kWatch };

// The failures of expectations.h, of all steps up to the first that fails. InvalidArgument,
// with file and line, for a step that cannot be done (an object that exists already) and for a
// configuration that is refused; Internal for a broken invariant.
absl::StatusOr<std::vector<std::string>> PlayInVirtualTime(const Behaviour& behaviour,
                                                           HeardFirst first);

}  // namespace fairlead::behaviours
