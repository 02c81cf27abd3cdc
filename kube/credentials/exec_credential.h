// Credentials from a plugin program, as in kubectl: client.authentication.k8s.io v1 and v1beta1.
// Protocol: kubernetes.io, "client-go credential plugins". The input is an ExecCredential object in
// the environment variable KUBERNETES_EXEC_INFO; the output is one with a status, on standard
// output.
//
// The program runs through posix_spawn (a fork would copy a process full of threads), in its own
// process group, without standard input, with no descriptor but its output, and with a small
// environment: see KeepsVariable. Its standard error is ours, as with kubectl. Our error texts
// never quote its output, which may hold secrets.
//
// Thread-safety: as CredentialLoader.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/credentials/client_config.h"
#include "kube/credentials/credentials.h"

namespace fairlead::kube {

class ExecCredentialLoader final : public CredentialLoader {
 public:
  static constexpr absl::Duration kDefaultTimeout = absl::Seconds(60);
  ExecCredentialLoader(ExecConfig exec, const ServerConfig& server,
                       absl::Duration timeout = kDefaultTimeout);
  ~ExecCredentialLoader() override;
  // Unauthenticated: the program is missing, failed, was too slow or wrote invalid output.
  // Cancelled: Abort.
  absl::StatusOr<LoadedCredentials> Load() override;
  void Abort() override;

 private:
  const ExecConfig exec_;
  const std::string exec_info_;  // JSON
  const absl::Duration timeout_;
  int abort_fd_;  // eventfd, readable once aborted
};

// Parses the ExecCredential on a plugin's standard output. `api_version` is the requested version.
absl::StatusOr<LoadedCredentials> ParseExecCredential(absl::string_view json,
                                                      absl::string_view api_version);
// The value of KUBERNETES_EXEC_INFO. It includes the bundle of authorities only if that is inline.
std::string ExecInfo(const ExecConfig& exec, const ServerConfig& server);
// The variables of our environment that a plugin gets besides those of its configuration: PATH,
// HOME, locale, time zone, proxies, and those of the clouds' command line tools.
bool KeepsVariable(absl::string_view name);

}  // namespace fairlead::kube
