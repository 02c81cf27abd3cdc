#include "queues/usage.h"

#include "absl/strings/str_cat.h"
#include "base/cron.h"
#include "base/status_macros.h"

namespace fairlead::queues {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

absl::Status CheckRange(absl::string_view field, absl::Duration value, absl::Duration low,
                        absl::Duration high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("usage: ", field, " is ", absl::FormatDuration(value), ", not within ",
                   absl::FormatDuration(low), " and ", absl::FormatDuration(high)));
}

}  // namespace

absl::StatusOr<WindowType> ParseWindowType(absl::string_view text) {
  if (text == "sliding") return WindowType::kSliding;
  if (text == "tumbling") return WindowType::kTumbling;
  if (text == "cron") return WindowType::kCron;
  return absl::InvalidArgumentError(
      absl::StrCat("usage: windowType '", text, "' is not sliding, tumbling or cron"));
}

absl::Status Validate(const UsageOptions& options) {
  if (options.half_life != absl::ZeroDuration()) {
    FAIRLEAD_RETURN_IF_ERROR(
        CheckRange("halfLifePeriod", options.half_life, absl::Seconds(1), 3660 * kDay));
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckRange("windowSize", options.window, absl::Minutes(1), 366 * kDay));
  FAIRLEAD_RETURN_IF_ERROR(
      CheckRange("stalenessPeriod", options.staleness, absl::Seconds(1), options.window));
  FAIRLEAD_RETURN_IF_ERROR(
      CheckRange("fetchInterval", options.sample_interval, absl::Seconds(1), options.staleness));
  if (options.tumbling_start == absl::InfinitePast() ||
      options.tumbling_start == absl::InfiniteFuture()) {
    return absl::InvalidArgumentError("usage: tumblingWindowStartTime is infinite");
  }
  if (options.window_type == WindowType::kCron) {
    FAIRLEAD_RETURN_IF_ERROR(CronSchedule::Parse(options.cron).status());
  }
  return absl::OkStatus();
}

}  // namespace fairlead::queues
