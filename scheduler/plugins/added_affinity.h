// NodeAffinityArgs of upstream's plugin NodeAffinity: a node affinity that every pod of the profile
// has besides its own.
//
// Thread-safety: pure function. Errors: InvalidArgument with the path of what is wrong, as upstream
// validates it (pkg/scheduler/apis/config/validation, ValidateNodeAffinityArgs).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/selector.h"

namespace fairlead::plugins {

struct AddedAffinity {
  bool has_required = false;
  std::vector<model::NodeSelectorTerm> required;  // any of them
  std::vector<model::PreferredNodeTerm> preferred;
};

// `plugin`: whose args they are. Nothing is added by "".
absl::StatusOr<AddedAffinity> ReadAddedAffinity(absl::string_view plugin,
                                                absl::string_view args_json);

}  // namespace fairlead::plugins
