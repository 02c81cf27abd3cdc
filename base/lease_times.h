// How long a Lease holds, for the configuration that sets it and the election that keeps to it.
// Thread-safety: plain values, a pure function.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fairlead {

// As kube-scheduler's LeaderElectionConfiguration, with its defaults.
struct LeaseTimes {
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);  // plus up to a fifth, jittered
  friend bool operator==(const LeaseTimes&, const LeaseTimes&) = default;
};

// The time for the answer to a leader's write before another process may lead.
inline constexpr absl::Duration kLeaseMarginMin = absl::Seconds(1);

// InvalidArgument "FIELD: what it must be", with the name that the field has in a configuration.
// Valid are lease_duration >= renew_deadline + kLeaseMarginMin in whole seconds, and renew_deadline
// > 1.2 retry_period > 0.
absl::Status CheckLeaseTimes(const LeaseTimes& times);

}  // namespace fairlead
