// The spelling of NodeRequest's phases, for the decoder and the encoder. Thread-safety: pure
// functions.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::kube {

absl::string_view PhaseName(model::NodeRequestPhase phase);
std::optional<model::NodeRequestPhase> ParsePhase(absl::string_view name);

}  // namespace fairlead::kube
