// Conversions between absl::string_view, our one view type, and std::string_view, which simdjson
// and the standard library use. They are distinct types in Debian's Abseil.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace fairlead {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

}  // namespace fairlead
