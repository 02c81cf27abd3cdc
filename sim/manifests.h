// Kubernetes manifests for the simulator: every kind of kube::DecodeManifests, and Deployments and
// Jobs, which only the controllers of a cluster handle. Namespaces are accepted and ignored.
//
// Errors: InvalidArgument with the file's name, and line and column of an error in the text.
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/api_server.h"
#include "sim/controllers.h"

namespace fairlead::sim {

struct Manifest {
  std::vector<Object> objects;              // in the order of the file
  std::vector<ControllerSpec> controllers;  // in the order of the file
};

absl::StatusOr<Manifest> ReadManifest(absl::string_view yaml, absl::string_view file_name);

}  // namespace fairlead::sim
