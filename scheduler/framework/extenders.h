// Reads the scheduler extenders of a KubeSchedulerConfiguration, and validates them as upstream
// does (k8s.io/kubernetes/pkg/scheduler/apis/config/validation, validateExtenders).
//
// Internal to this module. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/framework/config_json.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/extender_config.h"

namespace fairlead::framework {

// `value`: the list. InvalidArgument with the path of the field; Unimplemented for preemptVerb.
absl::Status ReadExtenders(const dom::element& value, const std::string& path,
                           std::vector<model::ExtenderConfig>& extenders);

// What extenders manage with ignoredByScheduler, NodeResourcesFit of each profile ignores.
// InvalidArgument if its args cannot be read.
absl::Status LeaveToExtenders(const std::vector<model::ExtenderConfig>& extenders,
                              std::vector<Profile>& profiles);

}  // namespace fairlead::framework
