// Renames queues and resources in the text of stored usage (queues/usage_codec.cc).
// Thread-safety: a pure function. Complexity: O(text).
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::journal {

// Calls `rename` for each name, first those of resources, then those of queues. Empty: the text is
// none of usage.
std::string RenamedUsage(absl::string_view text, const std::function<void(std::string&)>& rename);

}  // namespace fairlead::journal
