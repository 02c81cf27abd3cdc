// `fairlead day`: from the flags of the command line to day.h.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/connection.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::demo {

struct DayFlags {
  cmd::ClusterFlags cluster;
  std::string scenario, crds, log_file;
  bool yes = false, plain = false;
  double speed = 0;
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that the scenario may name
};
// Until the day is over, or SIGINT or SIGTERM. The Status' message is for people.
absl::Status RunDayCommand(const DayFlags& flags);

}  // namespace fairlead::demo
