// The command `run`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/command_flags.h"
#include "cmd/fairlead/run/profiles.h"

namespace fairlead::cmd {

struct RunFlags {
  CommonFlags common;
  bool leader_elect = true, leader_elect_given = false;
  std::vector<std::string> scheduler_names;  // empty: as configured
  // Of core::Shard: the process runs these. None: the one that is configured, or the whole cluster.
  std::vector<std::string> partition_label_values;
  std::string identity;  // empty: host name and a random part
  std::string log_level = "info", log_format = "logfmt";
  std::string audit_log;             // a file; empty: none, "-": standard output
  std::string journal;               // a folder; empty: none is recorded
  std::string metrics_bind_address;  // empty: as configured; "0": none
  std::string webhook_bind_address;  // empty, "0": none
  // Empty: the program makes its own certificate.
  std::string webhook_certificate_dir;
  std::string profile_bind_address;  // profiles.h; empty, "0": none
  Profiler profiler = {};
  // dashboard_server.h; empty: no dashboard, and a token unless the address is a loopback one.
  std::string dashboard_bind_address, dashboard_auth;
};
// `fairlead run`: runs until SIGTERM or SIGINT. SIGHUP reads configuration and catalogue again.
absl::Status RunScheduler(const RunFlags& flags);

}  // namespace fairlead::cmd
