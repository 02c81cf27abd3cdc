// Semantic versions, as attributes of devices have them and CEL compares them.
//
// Source: semver.org 2.0.0, and the strict parser that Kubernetes' CEL function semver() uses.
// Thread-safety: pure functions. Complexity: O(length).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::state {

struct SemanticVersion {
  uint64_t major = 0, minor = 0, patch = 0;
  std::vector<std::string> pre_release;  // identifiers; none: a release

  // None: it is no version, or a number in it does not fit in 64 bits.
  static std::optional<SemanticVersion> Parse(absl::string_view text);
};

// -1, 0 or 1, by precedence: build metadata does not count.
int Compare(const SemanticVersion& a, const SemanticVersion& b);

}  // namespace fairlead::state
