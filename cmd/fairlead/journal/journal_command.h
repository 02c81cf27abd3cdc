// The command `journal redact`. Prints its result to `out` and notes to standard error, and returns
// a Status with a message for users.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

// `fairlead journal redact`: journals without names. Contacts nothing.
struct JournalRedactFlags {
  std::vector<std::string> files;
  std::string to;  // a folder
  std::string output = "table";
  framework::RegistryPtr plugins = plugins::BuiltIn();  // of the program that recorded
};
// FailedPrecondition if the journals do not replay, or decide otherwise without names; then no file
// is made.
absl::Status RunJournalRedact(const JournalRedactFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
