// Conversions between absl::string_view, our one view type (a distinct type from std::string_view
// in Debian's Abseil), and the standard one, which simdjson and the standard library speak.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace fairlead {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

}  // namespace fairlead
