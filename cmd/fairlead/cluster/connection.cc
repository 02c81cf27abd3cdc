#include "cmd/fairlead/cluster/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/version.h"
#include "kube/credentials/credentials.h"
#include "kube/credentials/kubeconfig.h"

namespace fairlead::cmd {

absl::StatusOr<std::unique_ptr<kube::CurlTransport>> OpenService(const Service& service,
                                                                 kube::CurlTransportOptions options,
                                                                 const Clock& clock,
                                                                 absl::string_view what) {
  kube::ClientConfig client;
  client.server.url = service.url;
  client.server.ca_file = service.ca_file;
  client.user.token_file = service.bearer_token_file;
  options.user_agent = absl::StrCat("fairlead/", kVersion);
  absl::StatusOr<std::unique_ptr<kube::CurlTransport>> transport = kube::CurlTransport::Create(
      client.server, kube::NewCredentialSource(client, clock), clock, options);
  if (transport.ok()) return transport;
  return absl::Status(transport.status().code(),
                      absl::StrCat(what, ": ", transport.status().message()));
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ClusterFlags& flags,
                                                             absl::string_view program) {
  std::unique_ptr<Connection> connection(new Connection());
  absl::StatusOr<kube::ClientConfig> config =
      kube::LoadClientConfig(flags.kubeconfig, flags.context, kube::ProcessEnvironment());
  const bool named = !flags.kubeconfig.empty() || !flags.context.empty();
  if (named && absl::IsNotFound(config.status())) {
    // A mistyped flag, and not a cluster that is away.
    return absl::InvalidArgumentError(config.status().message());
  }
  FAIRLEAD_ASSIGN_OR_RETURN(connection->config_, std::move(config));
  kube::CurlTransportOptions options;
  options.user_agent = absl::StrCat(program, "/", kVersion);
  FAIRLEAD_ASSIGN_OR_RETURN(connection->transport_,
                            kube::CurlTransport::Create(
                                connection->config_.server,
                                kube::NewCredentialSource(connection->config_, connection->clock_),
                                connection->clock_, options));
  return connection;
}

std::string Connection::Describe() const {
  return absl::StrCat(config_.server.url, " (", config_.origin, ")");
}

}  // namespace fairlead::cmd
