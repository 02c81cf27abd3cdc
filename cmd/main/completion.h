// Scripts with which shells complete the command line: `fairlead completion bash|zsh|fish`. They
// are made from what the parser knows of commands and flags, so that they cannot differ from it.
// They contact nothing: names of objects are not completed.
//
// Thread-safety: pure functions. Complexity: linear in commands and flags.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::cmd {

struct FlagDescription {
  std::vector<std::string> names;  // "-o", "--output"
  std::string about;
  // How its value is called: "" (it has none), "FILE", "DIR", the words that it may be
  // ("json|yaml"), or anything else, of which nothing is completed.
  std::string value;
};

struct CommandDescription {
  std::string name, about;
  std::vector<FlagDescription> flags;
  std::string argument;                      // as FlagDescription::value; the command's own
  std::vector<CommandDescription> commands;  // below it
};

// InvalidArgument for another shell than bash, zsh and fish.
absl::StatusOr<std::string> CompletionScript(absl::string_view shell,
                                             const CommandDescription& program);

}  // namespace fairlead::cmd
