#include "cmd/fairlead/run/health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace fairlead::cmd {
namespace {

// In the words of Kubernetes' health endpoints: "[+]ping ok", "[-]etcd failed: reason".
void Check(bool ok, absl::string_view name, absl::string_view why, server::Response& response) {
  if (ok) {
    absl::StrAppend(&response.body, "[+]", name, " ok\n");
    return;
  }
  response.status = 503;
  absl::StrAppend(&response.body, "[-]", name, " failed: ", why, "\n");
}

std::string Silence(const AppStats& stats) {
  return absl::StrCat("the deciding thread has not answered for ",
                      absl::FormatDuration(absl::Trunc(stats.owner_silent_for, absl::Seconds(1))));
}

}  // namespace

server::Response LiveResponse(bool alive, const AppStats& stats) {
  server::Response response;
  Check(alive, "owner", Silence(stats), response);
  if (!alive) response.status = 500;
  return response;
}

server::Response ReadyResponse(bool alive, const AppStats& stats) {
  server::Response response;
  Check(alive, "owner", Silence(stats), response);
  if (stats.kinds.empty()) Check(false, "started", "not yet", response);
  for (const kube::ReflectorStats& kind : stats.kinds) {
    const bool stale = kind.synced && kind.IsStale(stats.stale_after);
    std::string why = kind.synced ? absl::StrCat("last heard of ",
                                                 absl::FormatDuration(absl::Trunc(
                                                     kind.since_last_event, absl::Seconds(1))),
                                                 " ago")
                                  : "not listed yet";
    if (!kind.last_error.empty()) absl::StrAppend(&why, ": ", kind.last_error);
    Check(kind.synced && !stale, absl::StrCat("watch-", model::KindTitle(kind.kind)), why,
          response);
  }
  absl::StrAppend(&response.body, stats.leader ? "leader\n" : "standby\n");
  return response;
}

server::Response HealthOf(const std::vector<ShardHealth>& shards) {
  server::Response all;
  for (const ShardHealth& each : shards) {
    all.status = std::max(all.status, each.response.status);
    if (each.shard.has_value()) absl::StrAppend(&all.body, "shard \"", *each.shard, "\":\n");
    all.body += each.response.body;
  }
  return all;
}

}  // namespace fairlead::cmd
