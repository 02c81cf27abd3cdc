// The objects that a scenario will create in a real cluster, read before anything is written.
//
// Manifests are applied unchanged, except for times: annotations
// fairlead.dev/{start,run,stop}-seconds on pods and pod templates, and a queue's minimum run times,
// are divided by the speed of the day.
//
// Errors: InvalidArgument with the file's name. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "document/json.h"
#include "sim/scenario.h"

namespace fairlead::demo {

// All documents of a YAML file. A namespaced object without a namespace gets none.
absl::StatusOr<std::vector<Json>> ReadManifests(const std::string& path);

void ScaleTimes(Json& manifest, double speed);

struct DayPlan {
  std::vector<Json> definitions;             // CustomResourceDefinitions of --crds
  std::vector<std::vector<Json>> manifests;  // by step of the timeline
  std::vector<std::string> namespaces;       // of all objects, sorted
};
// If `crds` is empty, the kinds must be installed.
absl::StatusOr<DayPlan> PlanDay(const sim::Scenario& scenario, const std::string& crds,
                                double speed);

// "10 Jobs, 2 Deployments, 3 Queues" over all steps.
std::string PlanText(const DayPlan& plan);

// "Job/ns/name" and "Queue/name" with the apiVersion of the kind in the plan, or its usual one.
absl::StatusOr<cmd::ObjectId> IdOfReference(const sim::ObjectRef& reference, const DayPlan& plan);

}  // namespace fairlead::demo
