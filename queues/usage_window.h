// The start of the time window in which usage is counted (UsageOptions::window_type).
//
// Thread-safety: plain value. Complexity: O(1); for cron windows that of CronSchedule.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/cron.h"
#include "queues/usage.h"

namespace fairlead::queues {

class UsageWindow {
 public:
  // InvalidArgument as Validate says.
  static absl::StatusOr<UsageWindow> Create(const UsageOptions& options);

  // In milliseconds since 1970, as `now`: the window is [start, now). It is empty at a boundary of
  // a tumbling or cron window, where the new one begins. A cron window that never began is a
  // sliding one.
  [[nodiscard]] int64_t Start(int64_t now_ms) const;
  [[nodiscard]] const UsageOptions& options() const { return options_; }

 private:
  UsageWindow(const UsageOptions& options, std::optional<CronSchedule> cron)
      : options_(options), cron_(cron) {}

  UsageOptions options_;
  std::optional<CronSchedule> cron_;
};

}  // namespace fairlead::queues
