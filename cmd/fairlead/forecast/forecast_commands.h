// The commands `what-if` and `drain-plan`. Each prints its result to `out` and notes to standard
// error, and returns a Status with a message for users.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/command_flags.h"

namespace fairlead::cmd {

// `fairlead what-if`: the present cluster and a change of it, played on; read-only.
struct WhatIfFlags {
  CommonFlags common;
  std::vector<std::string> files, removed;       // paths; "Kind/name", "Kind/namespace/name"
  std::string with_configuration, with_catalog;  // paths; empty: as in the present
  std::string bound = "1h";
  std::string journal;  // or a folder of some: what was recorded instead of the present cluster
};
absl::Status RunWhatIf(const WhatIfFlags& flags, std::ostream& out);

// `fairlead drain-plan NODE...`: what would become of their pods; read-only.
struct DrainPlanFlags {
  CommonFlags common;
  std::vector<std::string> nodes;
  std::string bound = "1h";
};
absl::Status RunDrainPlan(const DrainPlanFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
