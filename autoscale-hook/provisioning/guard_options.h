// Limits of provisioning; provisioning_rate.h and provisioning_guard.h explain them. Plain values.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace fairlead::hook {

struct GuardOptions {
  int64_t burst = 100, per_minute = 60;               // nodes for pods of one queue and size
  int64_t total_burst = 300, total_per_minute = 180;  // nodes for all pods
  absl::Duration doubt = absl::Seconds(10);           // a binding may be under way
  absl::Duration backoff_initial = absl::Hours(1), backoff_max = absl::Hours(24);
};

}  // namespace fairlead::hook
