// Times of a cron line, in UTC, to the minute: "MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK", each
// *, a number, a range, a step ("*/15", "8-18/2") or a list of these; months and days of the week
// also by their first three letters, Sunday is 0 or 7. If both days are restricted, either suffices
// (crontab(5)). Also @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
//
// Errors: InvalidArgument with the field and what is allowed. Thread-safety: plain values.
#pragma once

#include <bitset>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead {

class CronSchedule {
 public:
  // A window longer than that is refused by those who read one: it is searched for its beginning.
  static constexpr absl::Duration kLongestWindow = absl::Hours(24 * 31);

  static absl::StatusOr<CronSchedule> Parse(absl::string_view line);

  // The line names this minute.
  [[nodiscard]] bool Matches(absl::Time time) const;
  // A named minute is at most `now`, and less than `duration` before it. O(days of the duration).
  [[nodiscard]] bool IsOpen(absl::Time now, absl::Duration duration) const;

  friend bool operator==(const CronSchedule&, const CronSchedule&) = default;

 private:
  [[nodiscard]] bool MatchesDay(absl::CivilDay day) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;                      // 1..31
  std::bitset<13> months_;                    // 1..12
  std::bitset<8> weekdays_;                   // 0..6, Sunday is 0
  bool any_day_ = true, any_weekday_ = true;  // the field begins with *
};

}  // namespace fairlead
