// Text from API objects, made safe to send: condition messages and JSON have to be valid UTF-8, and
// they are cut at a byte limit.
// Thread-safety: pure functions. Complexity: linear.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::verdict {

// Length of the well-formed sequence at the front of `text` (1..4), or 0 if there is none.
// Well-formed as in Unicode 15, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF.
size_t Utf8SequenceLength(absl::string_view text);

// `text` with every byte that begins no well-formed sequence replaced by U+FFFD.
std::string ValidUtf8(absl::string_view text);

// The longest prefix of the valid UTF-8 `text` that has at most `max_bytes` and ends between two
// code points.
absl::string_view CutUtf8(absl::string_view text, size_t max_bytes);

}  // namespace fairlead::verdict
