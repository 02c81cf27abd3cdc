// URL functions for requests to the API server. Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::kube {

// Percent-encodes all but unreserved characters (RFC 3986, 2.3).
std::string QueryEscape(absl::string_view text);

// Appends "?key=value" or "&key=value", the value escaped.
void AddQuery(std::string& path, absl::string_view key, absl::string_view value);

}  // namespace fairlead::kube
