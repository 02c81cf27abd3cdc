// YAML as kubectl takes it, anchors and aliases included, for CustomResourceDefinitions: large
// schemas repeat themselves. Everything else goes through the strict kube::YamlToJson.
//
// Scalars follow YAML's core schema as far as definitions use it: null, true, false, decimal
// numbers; the rest are strings. Errors: InvalidArgument with line and column, also for a document
// that aliases blow up beyond a million values. Thread-safety: pure function.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cmd/fairlead/json_tree.h"

namespace fairlead::cmd {

// One tree a document; empty documents are left out.
absl::StatusOr<std::vector<Json>> ReadYamlTrees(absl::string_view yaml);

}  // namespace fairlead::cmd
