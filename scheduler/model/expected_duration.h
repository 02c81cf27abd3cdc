// The value of the annotation fairlead.dev/expected-duration. Thread-safety: a pure function.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::model {

// A duration above zero as Go writes it, perhaps infinite. None if it is not.
inline std::optional<absl::Duration> ParseExpectedDuration(absl::string_view text) {
  absl::Duration expected;
  const bool read = absl::ParseDuration(text, &expected) && expected > absl::ZeroDuration();
  return read ? std::optional(expected) : std::nullopt;
}

}  // namespace fairlead::model
