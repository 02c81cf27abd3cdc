// Conversions between absl::string_view, our one view type, and std::string_view, which simdjson
// and the standard library use. They are distinct types in Debian's Abseil. And quotes.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fairlead {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }
// Returns the text in double quotes. Nothing is escaped.
inline std::string Quoted(absl::string_view text) { return absl::StrCat("\"", text, "\""); }

}  // namespace fairlead
