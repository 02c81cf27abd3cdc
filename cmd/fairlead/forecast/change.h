// A change of a cluster that is only asked about: objects that are applied, objects that are taken
// away. For `fairlead what-if`.
//
// Errors of files: InvalidArgument "FILE:LINE:COLUMN: Kind name: field: what is wrong", found
// before a cluster is contacted. Thread-safety: pure functions of the files.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/fairlead/settings/config_file.h"
#include "sim/cluster.h"
#include "sim/manifests.h"
#include "sim/simulator.h"

namespace fairlead::cmd {

struct Change {
  sim::Manifest applied;
  std::vector<std::string> origins;  // of applied.objects: "FILE:LINE:COLUMN"
  std::vector<sim::ObjectRef> removed;
};

// `files` have YAML or JSON documents of the kinds that Fairlead reads, and of Deployments and
// Jobs. `removed` are "Kind/name" or "Kind/namespace/name", in any case. An object that occurs
// twice is an error. Objects without a namespace are in `default`.
absl::StatusOr<Change> ReadChange(const std::vector<std::string>& files,
                                  const std::vector<std::string>& removed,
                                  const ReadFile& read = ReadTextFile);

// What is to be done to a cluster that has `present`.
struct PlannedChange {
  sim::Present present;           // without what is taken away
  sim::Manifest applied;          // as `kubectl apply`; a pod or node of that name is replaced
  std::vector<std::string> done;  // "replaces Queue research", "adds Pod team/a", "deletes ..."
};

// NotFound for an object to be taken away that is not there. InvalidArgument if the queues would be
// no tree (a parent that does not exist, a cycle) that are one now, with the origin of the queue.
// FailedPrecondition for a Deployment or Job that has pods already: they would be counted twice.
//
// A pod that is taken away does not come back: its controller wants one less.
absl::StatusOr<PlannedChange> PlanChange(const Change& change, const sim::Present& present);

}  // namespace fairlead::cmd
