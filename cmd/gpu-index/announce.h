// Says which GPU a reservation pod holds: writes the annotation of its own pod.
//
// Errors: Unavailable where another attempt may help (no connection, time-out, 429, 5xx); anything
// else is the server's final no. Thread-safety: as the transport.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kube/transport/http.h"

namespace fairlead::gpu_index {

struct OwnPod {
  std::string ns, name;
};

// One attempt, answered. A repetition does no harm.
absl::Status Announce(kube::HttpTransport& transport, const OwnPod& pod, const std::string& device);

}  // namespace fairlead::gpu_index
