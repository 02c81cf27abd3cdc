#include "scheduler/plugins/args.h"

#include <simdjson.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace fairlead::plugins {
namespace {

namespace dom = simdjson::dom;

absl::Status Bad(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("args.", name, ": ", what));
}

// One overload a type of argument.
struct Setter {
  const dom::element& value;
  const Arg& arg;

  absl::Status operator()(bool* out) const {
    if (value.get(*out) != simdjson::SUCCESS) return Bad(arg.name, "must be true or false");
    return absl::OkStatus();
  }
  absl::Status operator()(int64_t* out) const {
    int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < arg.min || number > arg.max) {
      return Bad(arg.name, absl::StrCat("must be a whole number from ", arg.min, " to ", arg.max));
    }
    *out = number;
    return absl::OkStatus();
  }
  absl::Status operator()(std::string* out) const {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return Bad(arg.name, "must be a string");
    if (!arg.allowed.empty() &&
        std::find(arg.allowed.begin(), arg.allowed.end(), text) == arg.allowed.end()) {
      return Bad(arg.name, absl::StrCat("must be one of ", absl::StrJoin(arg.allowed, ", ")));
    }
    *out = std::string(text);
    return absl::OkStatus();
  }
  absl::Status operator()(std::vector<std::string>* out) const {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return Bad(arg.name, "must be a list of strings");
    out->clear();
    for (const dom::element item : array) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) return Bad(arg.name, "must be a list of strings");
      out->emplace_back(text);
    }
    return absl::OkStatus();
  }
};

absl::Status ReadOne(absl::string_view plugin, absl::string_view key, const dom::element& value,
                     const std::vector<Arg>& args) {
  if (key == "apiVersion" || key == "kind") {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return Bad(key, "must be a string");
    const std::string kind = absl::StrCat(plugin, "Args");
    if (key == "kind" && text != kind) return Bad(key, absl::StrCat("must be ", kind));
    return absl::OkStatus();
  }
  for (const Arg& arg : args) {
    if (arg.name == key) {
      return value.is_null() ? absl::OkStatus() : std::visit(Setter{value, arg}, arg.into);
    }
  }
  return Bad(key, absl::StrCat("is not an argument of ", plugin));
}

}  // namespace

absl::Status ReadArgs(absl::string_view plugin, absl::string_view args_json,
                      const std::vector<Arg>& args) {
  if (args_json.empty()) return absl::OkStatus();
  dom::parser parser;
  dom::element root;
  dom::object object;
  if (parser.parse(args_json.data(), args_json.size()).get(root) != simdjson::SUCCESS ||
      root.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("args: must be a JSON object");
  }
  std::set<std::string> seen;
  for (const auto& [key, value] : object) {
    if (!seen.insert(std::string(key)).second) return Bad(ToAbsl(key), "is given twice");
    FAIRLEAD_RETURN_IF_ERROR(ReadOne(plugin, ToAbsl(key), value, args));
  }
  return absl::OkStatus();
}

}  // namespace fairlead::plugins
