// The command `replay`. Prints its result to `out` and notes to standard error, and returns a
// Status with a message for users.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

// `fairlead replay`: the decisions of a journal, made again. Contacts nothing.
struct ReplayFlags {
  std::string file, output = "table";
  framework::RegistryPtr plugins = plugins::BuiltIn();  // of the program that recorded
};
// FailedPrecondition if some decision is another one.
absl::Status RunReplay(const ReplayFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
