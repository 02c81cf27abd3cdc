// Reads JSON objects of configuration documents strictly: what is unknown, repeated or of another
// type is InvalidArgument, named by its path ("profiles[0].plugins.score.enabled[1].weight").
//
// For readers of configuration alone: this module's, and core/config_fields.h. Thread-safety: pure
// functions.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::framework {

namespace dom = simdjson::dom;

absl::Status Bad(absl::string_view path, absl::string_view what);
std::string Field(absl::string_view path, absl::string_view key);
std::string Index(absl::string_view path, size_t i);

absl::StatusOr<std::string> ReadString(const dom::element& value, absl::string_view path);
absl::Status ReadNumber(const dom::element& value, absl::string_view path, int64_t* out);
absl::Status CheckPercentage(absl::string_view path, int64_t percentage);

using FieldReader = std::function<absl::Status(const dom::element&, const std::string& path)>;

// Calls the reader of every field; unknown and repeated fields are errors. A null value is as if
// the field were absent, as in Go. `wanted` is what the message says that the value must be.
absl::Status ReadObject(const dom::element& value, const std::string& path,
                        const std::map<std::string, FieldReader>& readers,
                        absl::string_view wanted = "an object");
absl::Status ReadArray(const dom::element& value, const std::string& path,
                       const FieldReader& reader);

FieldReader IntoString(std::string* out);
FieldReader IntoBool(bool* out);

}  // namespace fairlead::framework
