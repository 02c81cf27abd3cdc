// The dashboard of `fairlead run`, with a server of its own, so that it delays neither probes nor
// metrics.
//
// Ownership: application, live view and transport outlive it. Thread-safety: as server::HttpServer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/run/live_view.h"
#include "dashboard/access.h"
#include "dashboard/cached_text.h"
#include "kube/transport/http.h"
#include "server/http_server.h"

namespace fairlead::cmd {

struct DashboardSettings {
  server::BindAddress address;
  bool needs_token = true;
};

// Of the flags --dashboard-bind-address and --dashboard-auth ("", "token", "none"); nothing without
// an address. Without the second one a token is needed unless the address is a loopback one.
// InvalidArgument names the flag.
absl::StatusOr<std::optional<DashboardSettings>> ParseDashboardFlags(const std::string& address,
                                                                     const std::string& auth);

class DashboardServer {
 public:
  struct Ports {
    Application* application;
    LiveView* view;
    kube::HttpTransport* transport;  // to the API server, which knows tokens
    const Clock* clock;
  };
  // Unavailable if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<DashboardServer>> Start(const DashboardSettings& settings,
                                                                const Ports& ports);
  [[nodiscard]] int port() const { return server_->port(); }

 private:
  explicit DashboardServer(const Ports& ports);

  dashboard::CachedText snapshot_, timeline_;
  dashboard::Access access_;
  std::unique_ptr<server::HttpServer> server_;
};

}  // namespace fairlead::cmd
