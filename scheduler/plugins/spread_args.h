// The arguments of PodTopologySpread: the constraints of pods that have none of their own. The
// state gives them to pods (StateOptions::spread_defaults); the plugin only reads what a pod has.
//
// As upstream's PodTopologySpreadArgs: {"defaultingType": "System" | "List", "defaultConstraints":
// []}. Without a type System, which is these two, ScheduleAnyway: maxSkew 3 over
// kubernetes.io/hostname, maxSkew 5 over topology.kubernetes.io/zone. Without any args no
// constraints: the base profile says what it has (framework::DefaultProfile).
//
// Errors: InvalidArgument, as upstream validates them, for a list with type System, and for a
// constraint with a selector (each pod has one of its own), without a maxSkew of at least 1,
// without a label key or a mode, or with the key and the mode of another one. matchLabelKeys is
// accepted and has no effect, as upstream. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::plugins {

absl::StatusOr<state::SpreadDefaults> ReadSpreadDefaults(absl::string_view args_json);

// By the position of the profile, what its plugins make use of; empty if no profile has any. A
// profile with args that cannot be read, which makes no framework, has none.
std::vector<state::SpreadDefaults> SpreadDefaultsOf(
    const std::vector<framework::Profile>& profiles);

}  // namespace fairlead::plugins
