// What Fairlead would evict for a pod of a world of random_preemption.h, in the form in which
// `fairlead-control-plane scheduler-oracle` says what kube-scheduler's DefaultPreemption would.
//
// Thread-safety: none, one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::differential {

using Json = nlohmann::json;

// {"nodes": {NODE: {"pods": ["ns/name"], "violations": n}}, "best": [NODE], "chosen": NODE}: the
// nodes with victims, the most important victim first; those nodes of which one is to be chosen,
// because none costs less; and the first of them, or "".
Json JudgePreemption(state::ClusterState& state, const framework::Framework& framework,
                     state::PodId pod);

// A line for each difference to what kube-scheduler would evict, which says no "best": its choice
// is right if it is one of ours.
std::vector<std::string> ComparePreemption(const std::string& pod, const Json& ours,
                                           const Json& theirs);

}  // namespace fairlead::differential
