// The name that a mistyped name may mean. Thread-safety: pure functions. Complexity: O(candidates x
// length^2).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::cmd {

// The number of insertions, deletions, substitutions and swaps of neighbours that turn one into the
// other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// The candidate at the smallest distance, the first of equals; empty if none is within a third of
// the length of the typed word (at least 1, at most 3).
std::string Nearest(absl::string_view typed, const std::vector<std::string>& candidates);

}  // namespace fairlead::cmd
