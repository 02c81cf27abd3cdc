// Faults of KAI v0.17 that Fairlead does not copy, recognised in the data of a case by a rule; and
// a check of Fairlead's own decision.
//
// Rules (a case is recognised by its data, never by its name):
//   empty domain    a fit error of KAI's says that a domain of a topology has no CPU at all
//                   ("z0 didn't have enough resources: CPU cores, ..., available: 0"), while nodes
//                   of the domain have free CPU even after everything that KAI placed. (v0.17 looks
//                   below the required level where all candidate nodes share a domain of an inner
//                   level.)
//   broken level    pods of a group that KAI placed are in several domains of the level that the
//                   group itself requires. (v0.17 does not pin sub-groups that start later.)
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/conformance/engine_session.h"
#include "tests/conformance/json.h"

namespace fairlead::conformance {

// KAI's fault in the case, for people; empty if no known fault. Only cases of one session.
std::string KaiFaultIn(const Json& test);

// The faults of these pods (by "namespace/name") at the end of the case's session: over-committed
// nodes, broken required levels, partly placed gangs and optional sub-groups, pods that ran and do
// not. One line each; empty: none.
std::vector<std::string> PlacementProblems(const Json& test,
                                           const std::map<std::string, PodOutcome>& pods);

}  // namespace fairlead::conformance
