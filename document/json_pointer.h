// The steps of JSON pointers (RFC 6901), which the paths of JSON patches are: "~" is "~0" and "/"
// is
// "~1" in them. Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace fairlead {

inline std::string EscapePointerStep(absl::string_view key) {
  return absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
}
inline std::string UnescapePointerStep(absl::string_view step) {
  return absl::StrReplaceAll(step, {{"~1", "/"}, {"~0", "~"}});
}

}  // namespace fairlead
