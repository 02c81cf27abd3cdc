// Reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) given as JSON into profiles.
//
// Strict: a field or plugin that is not known, a key that comes twice and a value of the wrong type
// are InvalidArgument, named by path ("profiles[0].plugins.score.enabled[1].weight"). What upstream
// has and Fairlead does not do is Unimplemented and never silently dropped: plugins that Fairlead
// lacks (known_plugins.h). Plugin lists are merged with the profile's base as upstream merges them
// with its defaults (profile_merge.h).
//
// Thread-safety: pure function.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/framework/default_profiles.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/extender_config.h"

namespace fairlead::framework {

struct SchedulerConfiguration {
  // At least one; scheduler names are unique. Without profiles: DefaultProfile().
  std::vector<Profile> profiles;
  // In their order.
  std::vector<model::ExtenderConfig> extenders;
  // JSON of the fields of these names, for the client and the leader election; "" if absent.
  std::string leader_election_json;
  std::string client_connection_json;
  // podInitialBackoffSeconds and podMaxBackoffSeconds, as far as they are given.
  std::optional<absl::Duration> pod_backoff_initial, pod_backoff_max;
  // Paths of fields that are valid and change nothing here (parallelism, percentageOfNodesToScore,
  // ..), for a warning.
  std::vector<std::string> ignored;
};

// By scheduler name; BaseOf() for others.
using ProfileBases = std::map<std::string, ProfileBase, std::less<>>;

// Plugin names are checked against `registry`; their args are only passed on, Framework::Make reads
// them.
absl::StatusOr<SchedulerConfiguration> ReadSchedulerConfiguration(absl::string_view json,
                                                                  const Registry& registry,
                                                                  const ProfileBases& bases = {});

}  // namespace fairlead::framework
