// When a cron expression last fired: the boundary at which a usage window of type cron starts.
//
// Supports the common subset of five fields, in UTC: minute hour day-of-month month day-of-week.
// Each is `*`, a number, a range a-b, a step */n or a-b/n, or a comma-separated list of these. `?`
// is `*` for the two day fields; months and weekdays may be three-letter English names; weekday 7
// is Sunday. If both day fields are restricted, either may match (POSIX crontab). Also @hourly,
// @daily, @midnight, @weekly, @monthly, @yearly and @annually. Not: seconds, time zones, @every, L,
// W, #.
//
// Thread-safety: plain value. Complexity: Parse and LastAtOrBefore look at most eight years of days
// back (29 February is the rarest day). Errors: InvalidArgument that names the field.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace fairlead::queues {

class CronSchedule {
 public:
  // Also returns InvalidArgument for an expression that never fires (31 February).
  static absl::StatusOr<CronSchedule> Parse(absl::string_view expression);

  // The latest firing at or before `time`. None for infinite times.
  [[nodiscard]] std::optional<absl::Time> LastAtOrBefore(absl::Time time) const;

 private:
  [[nodiscard]] bool FiresOn(absl::CivilDay day) const;
  [[nodiscard]] std::optional<int> LastMinuteOfDay(int at_most) const;

  // Bit i: the field may have the value i.
  uint64_t minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;
  bool every_day_ = false, every_weekday_ = false;
};

}  // namespace fairlead::queues
