// The connection of a command to its cluster: clock, credentials and transport with one lifetime.
// Thread-safety: as kube::CurlTransport.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/credentials/client_config.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::cmd {

struct ClusterFlags {
  std::string kubeconfig;  // empty: as kubectl finds it
  std::string context;     // empty: the current one
};

// A server beside the API server: a database, a collector.
struct Service {
  std::string url;
  std::string ca_file;            // empty: the system's certificates
  std::string bearer_token_file;  // empty: none is sent
};
// Does not contact it yet. An error begins with `what`. The clock outlives the transport.
absl::StatusOr<std::unique_ptr<kube::CurlTransport>> OpenService(const Service& service,
                                                                 kube::CurlTransportOptions options,
                                                                 const Clock& clock,
                                                                 absl::string_view what);

class Connection {
 public:
  // Reads the kubeconfig; does not contact the server yet.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ClusterFlags& flags,
                                                          absl::string_view program = "fairlead");

  [[nodiscard]] const RealClock& clock() const { return clock_; }
  kube::CurlTransport& transport() { return *transport_; }
  [[nodiscard]] const kube::ClientConfig& config() const { return config_; }
  // "https://10.0.0.1:6443 (/home/x/.kube/config context kind)"
  [[nodiscard]] std::string Describe() const;

 private:
  Connection() = default;

  RealClock clock_;
  kube::ClientConfig config_;
  std::unique_ptr<kube::CurlTransport> transport_;
};

}  // namespace fairlead::cmd
