// The one loader of YAML: manifests, configuration, catalogues, scenarios, kubeconfigs.
//
// It is strict: a repeated key, a merge key, an unknown tag, text after a document and anything
// that JSON cannot express are errors; depth, size and number of values are bounded. Scalars follow
// the core schema of YAML 1.2: null, true/false and numbers in its spellings. Everything else is a
// string (yes, no, on, off included; 0777 is seven hundred seventy-seven).
//
// Errors: InvalidArgument "YAML: line L, column C: what", or "FILE:L:C: what" if a file is named.
// Only yaml.cc includes yaml-cpp, and no exception leaves it. Thread-safety: pure functions.
// Complexity: linear; an alias costs as much as the value that it repeats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"

namespace fairlead {

struct YamlOptions {
  std::string file_name = {};  // for errors
  // Permits anchors and aliases, which kubeconfigs and definitions have; elsewhere they are errors.
  bool aliases = false;
  // False: errors never quote the text, which may be a secret.
  bool quotes = true;
};

// One tree per document, null for an empty one. A tree's place is that of its first value.
absl::StatusOr<std::vector<Json>> LoadYaml(absl::string_view yaml, const YamlOptions& options = {});

// As LoadYaml, but as compact JSON texts.
absl::StatusOr<std::vector<std::string>> YamlToJson(absl::string_view yaml,
                                                    const YamlOptions& options = {});

// The place of the field at `path`: its key, or the list item. If only part of the path exists, the
// place of the deepest part that does. `path` is spelled as "hook.gpuLimits.H100.x" or
// "profiles[0].plugins"; keys may contain dots.
TextPlace FindPlace(const Json& root, absl::string_view path);

}  // namespace fairlead
