// The answers of /livez and /readyz. Thread-safety: pure functions.
#pragma once

#include "cmd/fairlead/app_stats.h"
#include "server/http_server.h"

namespace fairlead::cmd {

// 200 unless the owner's thread hangs: then the process has to be restarted.
server::Response LiveResponse(bool alive, const AppStats& stats);

// 200 if the process does its work, as the leader or as a standby: the owner's thread answers,
// every kind was listed, and none is stale. Otherwise 503. One line per check.
server::Response ReadyResponse(bool alive, const AppStats& stats);

}  // namespace fairlead::cmd
