#include "scheduler/framework/config_json.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::framework {

absl::Status Bad(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path.empty() ? "document" : path, ": ", what));
}

std::string Field(absl::string_view path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

std::string Index(absl::string_view path, size_t i) { return absl::StrCat(path, "[", i, "]"); }

absl::StatusOr<std::string> ReadString(const dom::element& value, absl::string_view path) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return Bad(path, "must be a string");
  return std::string(text);
}

absl::Status ReadNumber(const dom::element& value, absl::string_view path, int64_t* out) {
  return value.get(*out) == simdjson::SUCCESS ? absl::OkStatus()
                                              : Bad(path, "must be a whole number");
}

absl::Status CheckPercentage(absl::string_view path, int64_t percentage) {
  return percentage >= 0 && percentage <= 100 ? absl::OkStatus()
                                              : Bad(path, "must be between 0 and 100");
}

absl::Status ReadObject(const dom::element& value, const std::string& path,
                        const std::map<std::string, FieldReader>& readers,
                        absl::string_view wanted) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, absl::StrCat("must be ", wanted));
  std::set<std::string> seen;
  for (const auto& [key_view, field] : object) {
    const std::string key(key_view);
    auto reader = readers.find(key);
    if (reader == readers.end()) return Bad(Field(path, key), "is not a known field");
    if (!seen.insert(key).second) return Bad(Field(path, key), "is given twice");
    if (field.is_null()) continue;
    FAIRLEAD_RETURN_IF_ERROR(reader->second(field, Field(path, key)));
  }
  return absl::OkStatus();
}

absl::Status ReadArray(const dom::element& value, const std::string& path,
                       const FieldReader& reader) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return Bad(path, "must be a list");
  size_t i = 0;
  for (const dom::element item : array) {
    FAIRLEAD_RETURN_IF_ERROR(reader(item, Index(path, i)));
    ++i;
  }
  return absl::OkStatus();
}

FieldReader IntoString(std::string* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    FAIRLEAD_ASSIGN_OR_RETURN(*out, ReadString(value, path));
    return absl::OkStatus();
  };
}

FieldReader IntoBool(bool* out) {
  return [out](const dom::element& value, const std::string& path) {
    return value.get(*out) == simdjson::SUCCESS ? absl::OkStatus()
                                                : Bad(path, "must be true or false");
  };
}

}  // namespace fairlead::framework
