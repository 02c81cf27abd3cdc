// Reads rows of the table of kinds from YAML. Strict. Internal to grouping.
// Thread-safety: pure functions. Errors: InvalidArgument with file, place and field.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "grouping/table.h"

namespace fairlead::grouping {

extern const char kBuiltInKindsYaml[];

absl::StatusOr<std::vector<KindRow>> ReadKindRows(const Json& rows, absl::string_view file,
                                                  const std::string& field);

}  // namespace fairlead::grouping
