// The answers of /livez and /readyz. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/fairlead/app/app_stats.h"
#include "server/http_server.h"

namespace fairlead::cmd {

// 200 unless the owner's thread hangs: then the process has to be restarted.
server::Response LiveResponse(bool alive, const AppStats& stats);

// 200 if the process does its work, as the leader or as a standby: the owner's thread answers,
// every kind was listed, and none is stale. Otherwise 503. One line per check.
server::Response ReadyResponse(bool alive, const AppStats& stats);

// The answers of a process's shards as one: 503 if one of several is not well, each with its name.
struct ShardHealth {
  std::optional<std::string> shard;  // absent: there is one
  server::Response response;
};
server::Response HealthOf(const std::vector<ShardHealth>& shards);

}  // namespace fairlead::cmd
