#include "cmd/fairlead/run/dashboard_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/webhook/token_review.h"
#include "dashboard/handlers.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kSnapshotInterval = absl::Seconds(1);
constexpr absl::Duration kTimelineInterval = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::optional<DashboardSettings>> ParseDashboardFlags(const std::string& address,
                                                                     const std::string& auth) {
  if (!auth.empty() && auth != "token" && auth != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dashboard-auth ", auth, ": must be token or none"));
  }
  if (address.empty() || address == "0") return std::nullopt;
  const absl::StatusOr<server::BindAddress> parsed = server::ParseBindAddress(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dashboard-bind-address: ", parsed.status().message()));
  }
  const bool needs_token = auth.empty() ? !server::IsLoopback(*parsed) : auth == "token";
  return DashboardSettings{*parsed, needs_token};
}

DashboardServer::DashboardServer(const Ports& ports)
    : snapshot_([ports] { return ports.view->Snapshot(*ports.application); }, kSnapshotInterval,
                ports.clock),
      timeline_([ports] { return ports.view->Timeline(*ports.application); }, kTimelineInterval,
                ports.clock),
      access_([ports](const std::string& token) { return ReviewToken(*ports.transport, token); },
              ports.clock) {}

absl::StatusOr<std::unique_ptr<DashboardServer>> DashboardServer::Start(
    const DashboardSettings& settings, const Ports& ports) {
  auto served = std::unique_ptr<DashboardServer>(new DashboardServer(ports));
  server::HttpServerOptions options;
  options.requests = dashboard::Handlers({
      .snapshot = &served->snapshot_,
      .timeline = &served->timeline_,
      .access = settings.needs_token ? &served->access_ : nullptr,
      .local_hosts_only = !settings.needs_token && server::IsLoopback(settings.address),
  });
  FAIRLEAD_ASSIGN_OR_RETURN(served->server_,
                            server::HttpServer::Start(settings.address, {}, std::move(options)));
  return served;
}

}  // namespace fairlead::cmd
