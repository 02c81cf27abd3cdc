// The configuration of kubectl and of pods: which server, which user.
//
// Kubeconfig files are merged as in kubectl: for every cluster, user and context by name, and for
// current-context, the first file that has it wins; missing files of a list are ignored. Paths in a
// file are relative to its folder. Unsupported settings are errors: proxies, auth-providers,
// impersonation, interactive plugins. Proxy variables of the environment have no effect.
//
// Errors (InvalidArgument, NotFound): file, kind and name of the entry, field. Never a value that
// could be a secret. Thread-safety: pure functions of the given files and environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/credentials/client_config.h"

namespace fairlead::kube {

// The value of an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(absl::string_view name)>;
Environment ProcessEnvironment();

// Loads a context, current-context if empty, of files in order of precedence. A missing file is an
// error only if all are missing.
absl::StatusOr<ClientConfig> LoadKubeconfig(const std::vector<std::string>& files,
                                            absl::string_view context = "");

// The service account of our own pod: KUBERNETES_SERVICE_HOST and _PORT, and the files under
// <root>/var/run/secrets/kubernetes.io/serviceaccount. FailedPrecondition outside a pod.
absl::StatusOr<ClientConfig> InClusterConfig(const Environment& environment,
                                             absl::string_view root = "");

// Chooses as kubectl does: the file named explicitly, if not empty; else the list in KUBECONFIG;
// else ~/.kube/config, if it exists; else the pod's service account.
absl::StatusOr<ClientConfig> LoadClientConfig(absl::string_view explicit_file,
                                              absl::string_view context,
                                              const Environment& environment,
                                              absl::string_view root = "");

}  // namespace fairlead::kube
