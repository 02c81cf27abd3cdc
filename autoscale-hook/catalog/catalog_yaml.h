// The strict reader of catalogue files.
// Format: autoscale-hook/README.md. Errors: InvalidArgument "file:line:column: field: what is
// wrong", lines and columns from 1.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/catalog/catalog.h"

namespace fairlead::hook {

// The text of catalog/default.yaml.
extern const char kBuiltInCatalogYaml[];

struct CatalogFile {
  std::string as_of, source;
  std::vector<InstanceType> types;  // sorted by name
};
absl::StatusOr<CatalogFile> ReadCatalogYaml(absl::string_view yaml, absl::string_view file_name);

}  // namespace fairlead::hook
