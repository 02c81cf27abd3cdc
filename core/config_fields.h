// Reads the fields of a configuration document: strict, every error with the path of its field.
// Internal to core.
//
// Thread-safety: pure functions. Errors: InvalidArgument, "path: what is wrong".
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/framework/config_json.h"

namespace fairlead::core {

// Units of a decimal number that is read to six places.
inline constexpr int64_t kMicro = 1'000'000;

using framework::Bad;
using Handler = framework::FieldReader;

// As framework::ReadObject, in the words of YAML.
absl::Status ReadObject(const simdjson::dom::element& value, const std::string& path,
                        const std::map<std::string, Handler>& handlers);

// The target of a handler outlives it.
Handler Text(std::string* out);  // not empty
inline Handler Flag(bool* out) { return framework::IntoBool(out); }
Handler Count(int64_t* out, int64_t minimum);
Handler Span(absl::Duration* out);  // not negative, finite
Handler Dollars(int64_t* out);      // in millionths

// A mapping whose keys are the user's: `read` is called for each with its value and path.
absl::Status ReadMapping(
    const simdjson::dom::element& value, const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& key, const simdjson::dom::element& entry,
                                   const std::string& at)>
        read);

// A list of at least one, each once.
absl::Status ReadNames(const simdjson::dom::element& value, const std::string& path,
                       std::vector<std::string>& out);

}  // namespace fairlead::core
