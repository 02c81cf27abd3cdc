// Reads the args of a plugin. Strict: what is not known is InvalidArgument, named.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fairlead::plugins {

struct Arg {
  std::string name;
  // Where its value goes; left as it is if the argument is absent.
  std::variant<bool*, int64_t*, std::string*, std::vector<std::string>*> into;
  // Of an integer.
  int64_t min = 0, max = 0;
  // Of a string; empty: any.
  std::vector<std::string> allowed = {};
};

// `args_json` is "" or an object. apiVersion is accepted as it is, kind must be "<plugin>Args".
absl::Status ReadArgs(absl::string_view plugin, absl::string_view args_json,
                      const std::vector<Arg>& args);

}  // namespace fairlead::plugins
