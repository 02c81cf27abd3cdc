// Credentials from a plugin program, as kubectl gets them: client.authentication.k8s.io v1 and
// v1beta1. Protocol: kubernetes.io, "client-go credential plugins"; an ExecCredential object in the
// environment variable KUBERNETES_EXEC_INFO goes in, one with a status comes out on standard
// output.
//
// The program runs through posix_spawn (a fork would copy a process full of threads), in a process
// group of its own, without standard input, with no descriptor but its output, and with a small
// environment: see KeepsVariable. What it writes to standard error goes to ours, as with kubectl;
// no error text of ours quotes its output, for it may hold secrets.
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
  // Unauthenticated: the program is missing, failed, was too slow or wrote something else.
  // Cancelled: Abort.
  absl::StatusOr<LoadedCredentials> Load() override;
  void Abort() override;

 private:
  const ExecConfig exec_;
  const std::string exec_info_;  // JSON
  const absl::Duration timeout_;
  int abort_fd_;  // eventfd, readable once aborted
};

// The ExecCredential on a plugin's standard output. `api_version` is the one asked for.
absl::StatusOr<LoadedCredentials> ParseExecCredential(absl::string_view json,
                                                      absl::string_view api_version);
// What goes into KUBERNETES_EXEC_INFO. The bundle of authorities is included only if it is inline.
std::string ExecInfo(const ExecConfig& exec, const ServerConfig& server);
// The variables of our own environment that a plugin gets beside those of its configuration: PATH,
// HOME, locale, time zone, proxies, and those of the clouds' command line tools.
bool KeepsVariable(absl::string_view name);

}  // namespace fairlead::kube
