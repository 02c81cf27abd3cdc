#include "core/config_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "scheduler/model/quantity.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kMaxCount = 1'000'000'000;

}  // namespace

absl::Status ReadObject(const dom::element& value, const std::string& path,
                        const std::map<std::string, Handler>& handlers) {
  return framework::ReadObject(value, path, handlers, "a mapping");
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
  out.clear();
  FAIRLEAD_RETURN_IF_ERROR(framework::ReadArray(
      value, path, [&out](const dom::element& item, const std::string& at) -> absl::Status {
        std::string name;
        FAIRLEAD_RETURN_IF_ERROR(Text(&name)(item, at));
        if (std::find(out.begin(), out.end(), name) != out.end()) {
          return Bad(at, absl::StrCat("\"", name, "\" is given twice"));
        }
        out.push_back(std::move(name));
        return absl::OkStatus();
      }));
  if (out.empty()) return Bad(path, "must name at least one");
  return absl::OkStatus();
}

absl::Status ReadMapping(
    const dom::element& value, const std::string& path,
    absl::FunctionRef<absl::Status(const std::string&, const dom::element&, const std::string&)>
        read) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, "must be a mapping");
  for (const auto& [name, entry] : object) {
    const std::string key(name);
    FAIRLEAD_RETURN_IF_ERROR(read(key, entry, absl::StrCat(path, ".", key)));
  }
  return absl::OkStatus();
}

Handler Dollars(int64_t* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    std::string_view text;
    absl::StatusOr<int64_t> micro = absl::InvalidArgumentError("");
    if (value.get(text) == simdjson::SUCCESS) micro = model::ParseDollars(ToAbsl(text));
    if (!micro.ok()) {
      return Bad(path, "must be dollars an hour as a quoted string such as \"12.50\"");
    }
    *out = *micro;
    return absl::OkStatus();
  };
}

}  // namespace fairlead::core
