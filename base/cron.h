// The times that a cron expression names, in UTC, to the minute.
//
// Five fields: minute hour day-of-month month day-of-week. Each is `*`, a number, a range a-b, a
// step */n, a/n or a-b/n, or a comma-separated list of these. `?` is `*` for the two day fields;
// months and weekdays may be three-letter English names; weekday 7 is Sunday. If both day fields
// are restricted, either may match. A step above 1 restricts. Also @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually. Not: seconds, time zones, @every, L, W, #.
//
// Source of what is not in POSIX: robfig/cron, which KAI and Karpenter read their schedules with.
//
// Thread-safety: plain value. Errors: InvalidArgument that names the field.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace fairlead {

class CronSchedule {
 public:
  // A window longer than that is refused by those who read one: it is searched for its beginning.
  static constexpr absl::Duration kLongestWindow = absl::Hours(24 * 31);

  // Also returns InvalidArgument for an expression that never fires (31 February).
  static absl::StatusOr<CronSchedule> Parse(absl::string_view expression);

  // The expression names this minute. O(1).
  [[nodiscard]] bool Matches(absl::Time time) const;
  // The latest firing at or before `time`. None for infinite times. Looks at most eight years of
  // days back (29 February is the rarest day).
  [[nodiscard]] std::optional<absl::Time> LastAtOrBefore(absl::Time time) const;
  // It fired at `now`, or less than `duration` (at most kLongestWindow) before it. O(days of it).
  [[nodiscard]] bool IsOpen(absl::Time now, absl::Duration duration) const;

  // As numbers, to be kept; and the schedule of such. Other numbers make a schedule that fires at
  // some times or never.
  using Numbers = std::array<uint64_t, 6>;
  [[nodiscard]] Numbers ToNumbers() const {
    const uint64_t every = (every_day_ ? 1 : 0) | (every_weekday_ ? 2 : 0);
    return {minutes_, hours_, days_, months_, weekdays_, every};
  }
  static CronSchedule OfNumbers(const Numbers& numbers) {
    CronSchedule schedule;
    schedule.minutes_ = numbers[0];
    schedule.hours_ = numbers[1];
    schedule.days_ = numbers[2];
    schedule.months_ = numbers[3];
    schedule.weekdays_ = numbers[4];
    schedule.every_day_ = (numbers[5] & 1) != 0;
    schedule.every_weekday_ = (numbers[5] & 2) != 0;
    return schedule;
  }

  friend bool operator==(const CronSchedule&, const CronSchedule&) = default;

 private:
  [[nodiscard]] bool FiresOn(absl::CivilDay day) const;
  [[nodiscard]] std::optional<int> LastMinuteOfDay(int at_most) const;
  [[nodiscard]] std::optional<absl::Time> LastOfDays(absl::Time time, int days_back) const;

  // Bit i: the field may have the value i.
  uint64_t minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;
  bool every_day_ = false, every_weekday_ = false;
};

}  // namespace fairlead
