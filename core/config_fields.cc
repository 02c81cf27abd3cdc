#include "core/config_fields.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "scheduler/model/quantity.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kMicro = 1'000'000;
constexpr int64_t kMaxCount = 1'000'000'000;

}  // namespace

absl::Status Bad(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path.empty() ? "document" : path, ": ", what));
}

absl::Status ReadObject(const dom::element& value, const std::string& path,
                        const std::map<std::string, Handler>& handlers) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, "must be a mapping");
  std::set<std::string> seen;
  for (const auto& [key_view, field] : object) {
    const std::string key(key_view);
    const std::string at = path.empty() ? key : absl::StrCat(path, ".", key);
    auto handler = handlers.find(key);
    if (handler == handlers.end()) return Bad(at, "is not a known field");
    if (!seen.insert(key).second) return Bad(at, "is given twice");
    if (field.is_null()) continue;  // like absent, as in Go
    FAIRLEAD_RETURN_IF_ERROR(handler->second(field, at));
  }
  return absl::OkStatus();
}

Handler Text(std::string* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return Bad(path, "must be a string");
    if (absl::StripAsciiWhitespace({text.data(), text.size()}).empty())
      return Bad(path, "must not be empty");
    *out = std::string(text);
    return absl::OkStatus();
  };
}

Handler Flag(bool* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    if (value.get(*out) != simdjson::SUCCESS) return Bad(path, "must be true or false");
    return absl::OkStatus();
  };
}

Handler Count(int64_t* out, int64_t minimum) {
  return [out, minimum](const dom::element& value, const std::string& path) -> absl::Status {
    int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < minimum || number > kMaxCount) {
      return Bad(path, absl::StrCat("must be a whole number from ", minimum, " to ", kMaxCount));
    }
    *out = number;
    return absl::OkStatus();
  };
}

Handler Span(absl::Duration* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    std::string_view text;
    absl::Duration parsed;
    if (value.get(text) != simdjson::SUCCESS || !absl::ParseDuration(ToAbsl(text), &parsed) ||
        parsed < absl::ZeroDuration() || parsed == absl::InfiniteDuration()) {
      return Bad(path, "must be a duration such as \"1h30m\"");
    }
    *out = parsed;
    return absl::OkStatus();
  };
}

absl::Status ReadNames(const dom::element& value, const std::string& path,
                       std::vector<std::string>& out) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return Bad(path, "must be a list");
  out.clear();
  for (const dom::element item : array) {
    const std::string at = absl::StrCat(path, "[", out.size(), "]");
    std::string name;
    FAIRLEAD_RETURN_IF_ERROR(Text(&name)(item, at));
    if (std::find(out.begin(), out.end(), name) != out.end()) {
      return Bad(at, absl::StrCat("\"", name, "\" is given twice"));
    }
    out.push_back(std::move(name));
  }
  if (out.empty()) return Bad(path, "must name at least one");
  return absl::OkStatus();
}

Handler Dollars(int64_t* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    std::string_view text;
    absl::StatusOr<int64_t> micro = absl::InvalidArgumentError("");
    if (value.get(text) == simdjson::SUCCESS) micro = model::ParseDecimal(ToAbsl(text), kMicro);
    if (!micro.ok() || *micro < 0) {
      return Bad(path, "must be dollars an hour as a quoted string such as \"12.50\"");
    }
    *out = *micro;
    return absl::OkStatus();
  };
}

}  // namespace fairlead::core
