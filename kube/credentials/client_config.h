// The address of the API server, the authorities to trust, and our identity, from a kubeconfig or a
// pod's service account. Plain values; they hold secrets and are never printed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::kube {

struct ServerConfig {
  std::string url;      // "https://10.0.0.1:6443", without a slash at the end
  std::string ca_pem;   // certificates to trust, instead of the system's; wins over ca_file
  std::string ca_file;  // read again while the program runs: bundles rotate
  // The name that the server's certificate must have, if it is not the URL's host.
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
};

// A program that prints credentials: client.authentication.k8s.io.
struct ExecConfig {
  std::string api_version;  // "client.authentication.k8s.io/v1" or ".../v1beta1"
  std::string command;      // absolute, or a name to look up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
};

// At most one kind of Authorization (token or token_file, username, exec), and possibly a
// certificate.
struct UserConfig {
  std::string token;
  std::string token_file;  // overrides token while it can be read
  std::string username, password;
  // Inline PEM wins over the file.
  std::string certificate_pem, certificate_file;
  std::string key_pem, key_file;
  std::optional<ExecConfig> exec;
};

struct ClientConfig {
  ServerConfig server;
  UserConfig user;
  std::string default_namespace = "default";
  std::string origin;  // for messages: "/home/x/.kube/config context kind", "in-cluster"
};

}  // namespace fairlead::kube
