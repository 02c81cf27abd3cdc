// Faults of KAI v0.17 that Fairlead does not copy, recognised in the data of a case by a rule; and
// whether what Fairlead decided instead is right by itself.
//
// Rules (a case is known by what it says, never by its name):
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

// What KAI did wrong in the case, for people; empty if nothing that is known. Only cases of one
// session.
std::string KaiFaultIn(const Json& test);

// What is wrong with these pods (by "namespace/name") at the end of the case's session: nodes that
// are over-committed, required levels that are broken, gangs and optional sub-groups of which only
// a part is placed, pods that ran and do not. One line each; empty: nothing.
std::vector<std::string> PlacementProblems(const Json& test,
                                           const std::map<std::string, PodOutcome>& pods);

}  // namespace fairlead::conformance
