// Records which GPU a reservation pod holds, in the annotation of its own pod.
//
// Errors: Unavailable if another attempt may help (no connection, time-out, 429, 5xx); any other
// error is the server's final refusal. Thread-safety: as the transport.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kube/transport/http.h"

namespace fairlead::gpu_index {

struct OwnPod {
  std::string ns, name;
};

// One attempt; it may be repeated safely.
absl::Status Announce(kube::HttpTransport& transport, const OwnPod& pod, const std::string& device);

}  // namespace fairlead::gpu_index
