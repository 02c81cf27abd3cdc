// Flags that several commands have. A command's own flags stand in the header of the command.
#pragma once

#include <optional>
#include <string>

#include "cmd/fairlead/cluster/connection.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

struct CommonFlags {
  ClusterFlags cluster;
  std::string output = "table";
  std::string configuration, catalog;                   // paths
  std::string ns;                                       // empty: that of the context
  std::optional<std::string> partition_label_value;     // core::Shard; absent: as configured
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that the configuration may name
};

}  // namespace fairlead::cmd
