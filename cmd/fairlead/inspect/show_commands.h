// The commands that show a cluster. Each prints its result to `out` and notes to standard error,
// and returns a Status with a message for users.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/command_flags.h"

namespace fairlead::cmd {

// `fairlead queues`, `nodes`, `top`, `explain`: read-only.
absl::Status RunQueues(const CommonFlags& flags, std::ostream& out);
absl::Status RunNodes(const CommonFlags& flags, std::ostream& out);

struct TopFlags {
  CommonFlags common;
  std::string sort = "gpus";
  int64_t limit = 20;  // workloads in the table
};
absl::Status RunTop(const TopFlags& flags, std::ostream& out);

struct ExplainFlags {
  CommonFlags common;
  std::string subject;
  bool watch = false;
  std::string until;  // "", "placed", "running"; not empty: watch
};
absl::Status RunExplain(const ExplainFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
