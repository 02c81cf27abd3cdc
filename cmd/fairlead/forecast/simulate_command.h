// The command `simulate`. Prints its result to `out` and notes to standard error, and returns a
// Status with a message for users.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

struct SimulateFlags {
  std::string scenario, output = "table", configuration;
  std::string journal;  // a new file: what is decided, for replay; empty: none
  bool live = false, check = false;
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that configurations may name
};
absl::Status RunSimulateCommand(const SimulateFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
