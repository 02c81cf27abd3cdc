// The pods of a Job or a Deployment, found by its selector and by their owner references.
// Thread-safety: one thread. Errors: those of the API server; NotFound if there are no pods.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "cmd/fairlead/inspect/explain.h"

namespace fairlead::cmd {

struct OwnedPod {
  std::string name;
  std::string note;  // its number and the total
};

// The first waiting pod by name, else the first pod.
absl::StatusOr<OwnedPod> FindPodOf(ApiClient& client, const Subject& subject);

}  // namespace fairlead::cmd
