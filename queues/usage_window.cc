#include "queues/usage_window.h"

#include "base/status_macros.h"

namespace fairlead::queues {

absl::StatusOr<UsageWindow> UsageWindow::Create(const UsageOptions& options) {
  FAIRLEAD_RETURN_IF_ERROR(Validate(options));
  std::optional<CronSchedule> cron;
  if (options.window_type == WindowType::kCron) {
    FAIRLEAD_ASSIGN_OR_RETURN(cron, CronSchedule::Parse(options.cron));
  }
  return UsageWindow(options, std::move(cron));
}

int64_t UsageWindow::Start(int64_t now_ms) const {
  const int64_t window_ms = absl::ToInt64Milliseconds(options_.window);
  switch (options_.window_type) {
    case WindowType::kSliding:
      return now_ms - window_ms;
    case WindowType::kTumbling: {
      const int64_t past_ms = now_ms - absl::ToUnixMillis(options_.tumbling_start);
      const int64_t into_ms = past_ms % window_ms;
      return now_ms - (into_ms < 0 ? into_ms + window_ms : into_ms);
    }
    case WindowType::kCron: {
      const auto fired = cron_->LastAtOrBefore(absl::FromUnixMillis(now_ms));
      return fired ? absl::ToUnixMillis(*fired) : now_ms - window_ms;
    }
  }
  return now_ms;
}

}  // namespace fairlead::queues
