// UTF-8 validation for text that leaves the program: the API server rejects invalid sequences, and
// its length limits are in bytes. Source: RFC 3629. Thread-safety: pure functions. Complexity:
// linear.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead {

// Length of the valid sequence at the front of `text` (1..4), or 0 if there is none.
size_t Utf8SequenceLength(absl::string_view text);

// Replaces every byte that is not part of a valid sequence by U+FFFD.
std::string ToValidUtf8(absl::string_view text);

// ToValidUtf8, cut to at most `max_bytes` without splitting a code point.
std::string TruncateUtf8(absl::string_view text, size_t max_bytes);

}  // namespace fairlead
