// Reads the args of a plugin. Strict: what is not known is InvalidArgument, named by its path
// ("args.scoringStrategy.resources[0].weight").
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace simdjson::dom {
class element;
}

namespace fairlead::plugins {

using JsonElement = simdjson::dom::element;
// Reads a value at a path, with ReadFields() or ReadItems(). It is not null.
using ArgReader = std::function<absl::Status(absl::string_view path, const JsonElement& value)>;

struct Arg {
  std::string name;
  // Where its value goes; left as it is if the argument is absent or null.
  std::variant<bool*, int64_t*, std::string*, std::vector<std::string>*, ArgReader> into;
  // Of an integer.
  int64_t min = 0, max = 0;
  // Of a string; empty: any.
  std::vector<std::string> allowed = {};
};

// `args_json` is "" or an object. apiVersion is accepted as it is, kind must be "<plugin>Args".
absl::Status ReadArgs(absl::string_view plugin, absl::string_view args_json,
                      const std::vector<Arg>& args);

// An object with these fields and no others.
absl::Status ReadFields(absl::string_view path, const JsonElement& value,
                        const std::vector<Arg>& fields);
// A list: `read` is called for each item with its path.
absl::Status ReadItems(absl::string_view path, const JsonElement& value, const ArgReader& read);

// InvalidArgument "<path>: <what>".
absl::Status BadArg(absl::string_view path, absl::string_view what);

}  // namespace fairlead::plugins
