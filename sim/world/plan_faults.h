// Families of faults that hit the program as a process and the answers that it gets:
//
//   reload    configuration and catalogue change while it runs, also to what cannot be used, also
//             twice within moments, also while writes have no answer, while nodes boot, and while
//             leadership changes
//   stop      SIGTERM to one or both replicas, also while answers take seconds
//   points    it dies right before or after a write of one kind, or a call of the cloud
//   answers   writes of one kind are answered 404, 409, 410, 422, 429 with Retry-After, 5xx or not
//             at all, some of them though they were done; lists and watches 410; connections for
//             writes are dead, or end in the middle of answers
//
// Drawn apart from all other families, so that a seed's other operations are the same with and
// without them.
//
// Thread-safety: pure functions. Determinism: same seed, families and plan, same operations.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

const std::set<std::string, std::less<>>& ProcessFamilies();

// `families`: those of them that were asked for. Each is used by every third world; by every one,
// if it is the only one.
void AddProcessFaults(uint64_t seed, const std::set<std::string, std::less<>>& families,
                      Plan& plan);

}  // namespace fairlead::sim::world
