#include "base/lease_times.h"

#include "absl/strings/str_cat.h"

namespace fairlead {

absl::Status CheckLeaseTimes(const LeaseTimes& times) {
  if (times.retry_period <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("retryPeriod: must be more than zero");
  }
  if (times.renew_deadline <= times.retry_period * 1.2) {
    return absl::InvalidArgumentError("renewDeadline: must be more than 1.2 times retryPeriod");
  }
  if (times.lease_duration < times.renew_deadline + kLeaseMarginMin) {
    return absl::InvalidArgumentError(absl::StrCat("leaseDuration: must be at least ",
                                                   absl::FormatDuration(kLeaseMarginMin),
                                                   " more than renewDeadline"));
  }
  if (times.lease_duration % absl::Seconds(1) != absl::ZeroDuration()) {
    return absl::InvalidArgumentError("leaseDuration: must be whole seconds");
  }
  return absl::OkStatus();
}

}  // namespace fairlead
