// Cases in which we decide differently on purpose: which, why, and what we do instead.
// deviations.txt describes the form of the text.
//
// Thread-safety: plain values, pure functions. Errors: InvalidArgument with the line's number.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {

struct Deviation {
  std::string why;
  std::map<std::string, ExpectedPod> pods;
  CallLimits limits;
};

using Deviations = std::map<std::string, Deviation>;  // by id of the case

absl::StatusOr<Deviations> ReadDeviations(absl::string_view text);

// NotFound if it names a pod that the case does not mention.
absl::Status ApplyDeviation(const Deviation& deviation, Expectations& expect);

}  // namespace fairlead::conformance
