// Reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) given as JSON into profiles.
//
// Strict: a field or plugin that is not known, a key that comes twice and a value of the wrong type
// are InvalidArgument, named by path ("profiles[0].plugins.score.enabled[1].weight"). What upstream
// has and Fairlead does not do is Unimplemented and never silently dropped: extenders, and plugin
// lists at points other than multiPoint, filter and score (queue order, preemption and binding are
// settings of FairleadConfiguration).
//
// Merge rules, as upstream's (pkg/scheduler/apis/config/v1/default_plugins.go, framework/runtime):
//  - multiPoint starts from DefaultProfile(). `disabled` takes defaults away ("*": all); a default
//    named in `enabled` keeps its place and takes the weight given; others follow in the order
//    given.
//  - filter and score add to or take away from that for their point alone; a plugin enabled at its
//    point is not touched by `disabled` there. Filters run in this order: those enabled at both,
//    those of multiPoint, those of the point alone.
//  - A weight that is absent or 0 is the default one, 1 for a plugin not in DefaultProfile().
// Names of upstream's default plugins that Fairlead does not have may be disabled, not enabled.
//
// Thread-safety: pure function.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"

namespace fairlead::framework {

struct SchedulerConfiguration {
  // At least one; scheduler names are unique. Without profiles: DefaultProfile().
  std::vector<Profile> profiles;
  // JSON of the fields of these names, for the client and the leader election; "" if absent.
  std::string leader_election_json;
  std::string client_connection_json;
  // Paths of fields that are valid and change nothing here (parallelism, percentageOfNodesToScore,
  // ..), for a warning.
  std::vector<std::string> ignored;
};

// Plugin names are checked against `registry`; their args are only passed on, Framework::Make reads
// them.
absl::StatusOr<SchedulerConfiguration> ReadSchedulerConfiguration(absl::string_view json,
                                                                  const Registry& registry);

}  // namespace fairlead::framework
