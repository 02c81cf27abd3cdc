// The syntax of labels and taints, for texts from which the template of a group is made.
//
// Source: Kubernetes' documentation of labels, and of taints. Errors: InvalidArgument that quotes
// the text. Thread-safety: pure functions. Complexity: linear in the text.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"

namespace fairlead::hook {

// "key" or "domain/key".
absl::Status CheckLabelKey(absl::string_view key);
absl::Status CheckLabelValue(absl::string_view value);
// `effect` as the API spells it.
absl::StatusOr<model::Taint> MakeTaint(absl::string_view key, absl::string_view value,
                                       absl::string_view effect);
// "key=value:Effect" or "key:Effect".
absl::StatusOr<model::Taint> ParseTaint(absl::string_view text);

}  // namespace fairlead::hook
