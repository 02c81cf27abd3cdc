// Reads the fields of a configuration document: strict, every error with the path of its field.
// Internal to core.
//
// Thread-safety: pure functions. Errors: InvalidArgument, "path: what is wrong".
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::core {

absl::Status Bad(absl::string_view path, absl::string_view what);

using Handler =
    std::function<absl::Status(const simdjson::dom::element& value, const std::string& path)>;

// Every field needs a handler and occurs once; null counts as absent, as in Go.
absl::Status ReadObject(const simdjson::dom::element& value, const std::string& path,
                        const std::map<std::string, Handler>& handlers);

// The target of a handler outlives it.
Handler Text(std::string* out);  // not empty
Handler Flag(bool* out);
Handler Count(int64_t* out, int64_t minimum);
Handler Span(absl::Duration* out);  // not negative, finite
Handler Dollars(int64_t* out);      // in millionths

// A list of at least one, each once.
absl::Status ReadNames(const simdjson::dom::element& value, const std::string& path,
                       std::vector<std::string>& out);

}  // namespace fairlead::core
