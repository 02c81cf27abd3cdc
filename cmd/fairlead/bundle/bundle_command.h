// The command `bundle`. Prints its result to `out` and notes to standard error, and returns a
// Status with a message for users.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/command_flags.h"

namespace fairlead::cmd {

// `fairlead bundle`: an archive for a report of a fault; reads the cluster only.
struct BundleFlags {
  CommonFlags common;          // `ns`: of the program; empty: fairlead
  std::string file;            // empty: "fairlead-bundle-TIME.tar.gz" here
  std::string journal;         // a folder of journals; empty: none
  std::string log, audit_log;  // files; empty: none
  int64_t max_mib = 50;
  bool redact = true;
};
// What cannot be read is told in the archive and in `out`, and is no error. A file that exists is
// not overwritten.
absl::Status RunBundle(const BundleFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
