// Kubernetes manifests as the simulator takes them: everything that kube::DecodeManifests knows,
// and Deployments and Jobs, which only the controllers of a cluster know. Namespaces are accepted
// and ignored.
//
// Errors: InvalidArgument with the file's name, and line and column where the text itself is at
// fault. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/api_server.h"
#include "sim/controllers.h"

namespace fairlead::sim {

struct Manifest {
  std::vector<Object> objects;              // in the order of the file
  std::vector<ControllerSpec> controllers;  // likewise
};

absl::StatusOr<Manifest> ReadManifest(absl::string_view yaml, absl::string_view file_name);

}  // namespace fairlead::sim
