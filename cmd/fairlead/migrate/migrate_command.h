// The commands `migrate`, `migrate check` and `migrate back`. Each prints its result to `out` and
// notes to standard error, and returns a Status with a message for users.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/connection.h"

namespace fairlead::cmd {

// `fairlead migrate`, `migrate check` and `migrate back`: from KAI's scheduler to Fairlead, and
// back.
struct MigrateFlags {
  ClusterFlags cluster;
  std::string output = "table";       // of check
  bool dry_run = false, yes = false;  // one of them, but for check
  bool controllers = false;           // KAI's other controllers, too
  std::string settle = "150s";
};
// Reads alone. FailedPrecondition if something is to be done first.
absl::Status RunMigrateCheck(const MigrateFlags& flags, std::ostream& out);
absl::Status RunMigrate(const MigrateFlags& flags, std::ostream& out);
absl::Status RunMigrateBack(const MigrateFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
