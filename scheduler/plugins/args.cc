#include "scheduler/plugins/args.h"

#include <simdjson.h>

#include <algorithm>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace fairlead::plugins {
namespace {

namespace dom = simdjson::dom;

constexpr char kRoot[] = "args";

std::string At(absl::string_view path, absl::string_view field) {
  return absl::StrCat(path, ".", field);
}

// One overload a type of argument.
struct Setter {
  const std::string& path;
  const dom::element& value;
  const Arg& arg;

  absl::Status operator()(bool* out) const {
    if (value.get(*out) != simdjson::SUCCESS) return BadArg(path, "must be true or false");
    return absl::OkStatus();
  }
  absl::Status operator()(int64_t* out) const {
    int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number < arg.min || number > arg.max) {
      return BadArg(path, absl::StrCat("must be a whole number from ", arg.min, " to ", arg.max));
    }
    *out = number;
    return absl::OkStatus();
  }
  absl::Status operator()(std::string* out) const {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return BadArg(path, "must be a string");
    if (!arg.allowed.empty() &&
        std::find(arg.allowed.begin(), arg.allowed.end(), text) == arg.allowed.end()) {
      return BadArg(path, absl::StrCat("must be one of ", absl::StrJoin(arg.allowed, ", ")));
    }
    *out = std::string(text);
    return absl::OkStatus();
  }
  absl::Status operator()(std::vector<std::string>* out) const {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return BadArg(path, "must be a list of strings");
    out->clear();
    for (const dom::element item : array) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) return BadArg(path, "must be a list of strings");
      out->emplace_back(text);
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const ArgReader& read) const { return read(path, value); }
};

// `unknown`: what is wrong with a field that is none of them.
absl::Status ReadField(absl::string_view path, absl::string_view key, const dom::element& value,
                       const std::vector<Arg>& fields, absl::string_view unknown) {
  const std::string at = At(path, key);
  for (const Arg& arg : fields) {
    if (arg.name == key) {
      return value.is_null() ? absl::OkStatus() : std::visit(Setter{at, value, arg}, arg.into);
    }
  }
  return BadArg(at, unknown);
}

// `read` is called for each key, which is there once.
absl::Status ReadObject(
    absl::string_view path, const dom::element& value,
    absl::FunctionRef<absl::Status(absl::string_view key, const dom::element& value)> read) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return BadArg(path, "must be a JSON object");
  std::set<std::string> seen;
  for (const auto& [key, field] : object) {
    if (!seen.insert(std::string(key)).second) {
      return BadArg(At(path, ToAbsl(key)), "is given twice");
    }
    FAIRLEAD_RETURN_IF_ERROR(read(ToAbsl(key), field));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BadArg(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status ReadFields(absl::string_view path, const JsonElement& value,
                        const std::vector<Arg>& fields) {
  return ReadObject(path, value, [&](absl::string_view key, const dom::element& field) {
    return ReadField(path, key, field, fields, absl::StrCat("is not a field of ", path));
  });
}

absl::Status ReadItems(absl::string_view path, const JsonElement& value, const ArgReader& read) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return BadArg(path, "must be a list");
  size_t index = 0;
  for (const dom::element item : array) {
    FAIRLEAD_RETURN_IF_ERROR(read(absl::StrCat(path, "[", index++, "]"), item));
  }
  return absl::OkStatus();
}

absl::Status ReadArgs(absl::string_view plugin, absl::string_view args_json,
                      const std::vector<Arg>& args) {
  if (args_json.empty()) return absl::OkStatus();
  dom::parser parser;
  dom::element root;
  if (parser.parse(args_json.data(), args_json.size()).get(root) != simdjson::SUCCESS) {
    return BadArg(kRoot, "must be a JSON object");
  }
  return ReadObject(kRoot, root, [&](absl::string_view key, const dom::element& value) {
    if (key == "apiVersion" || key == "kind") {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) return BadArg(At(kRoot, key), "must be a string");
      const std::string kind = absl::StrCat(plugin, "Args");
      if (key == "kind" && ToAbsl(text) != kind) {
        return BadArg(At(kRoot, key), absl::StrCat("must be ", kind));
      }
      return absl::OkStatus();
    }
    return ReadField(kRoot, key, value, args, absl::StrCat("is not an argument of ", plugin));
  });
}

}  // namespace fairlead::plugins
