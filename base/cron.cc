#include "base/cron.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace fairlead {
namespace {

constexpr int kMinutesPerHour = 60;
constexpr int kLastMinuteOfDay = 24 * kMinutesPerHour - 1;
// Set beside the values if an item of the field restricts nothing.
constexpr uint64_t kEvery = uint64_t{1} << 63;
// Between two 29ths of February there are at most eight years (1896-1904, 2096-2104).
constexpr int kMaxDaysBack = 8 * 366;

constexpr absl::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr absl::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Field {
  absl::string_view name;
  int low, high;
  absl::Span<const absl::string_view> words;  // the first one stands for `low`
  bool question_mark = false;
};

const Field kMinute = {"minute", 0, 59, {}};
const Field kHour = {"hour", 0, 23, {}};
const Field kDayOfMonth = {"day of month", 1, 31, {}, true};
const Field kMonth = {"month", 1, 12, kMonths};
const Field kDayOfWeek = {"day of week", 0, 7, kWeekdays, true};

absl::Status Wrong(const Field& field, absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cron field ", field.name, ": '", text, "' ", why));
}

absl::StatusOr<int> ParseValue(const Field& field, absl::string_view text) {
  for (size_t i = 0; i < field.words.size(); ++i) {
    if (absl::EqualsIgnoreCase(text, field.words[i])) return field.low + static_cast<int>(i);
  }
  int value = 0;
  // SimpleAtoi accepts signs and spaces, a cron field does not.
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) ||
      !absl::SimpleAtoi(text, &value)) {
    return Wrong(field, text, "is not a number or a name");
  }
  if (value < field.low || value > field.high) {
    return Wrong(field, text, absl::StrCat("is not within ", field.low, "-", field.high));
  }
  return value;
}

bool IsEvery(const Field& field, absl::string_view text) {
  return text == "*" || (field.question_mark && text == "?");
}

absl::StatusOr<uint64_t> ParseItem(const Field& field, absl::string_view item) {
  const std::vector<absl::string_view> parts = absl::StrSplit(item, '/');
  if (parts.size() > 2) return Wrong(field, item, "has more than one step");
  int step = 1;
  if (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &step) || step < 1)) {
    return Wrong(field, item, "has a step that is not a positive number");
  }
  int low = field.low, high = field.high;
  if (!IsEvery(field, parts[0])) {
    const std::vector<absl::string_view> ends = absl::StrSplit(parts[0], '-');
    if (ends.size() > 2) return Wrong(field, item, "is not a range");
    FAIRLEAD_ASSIGN_OR_RETURN(low, ParseValue(field, ends[0]));
    if (ends.size() == 2) {
      FAIRLEAD_ASSIGN_OR_RETURN(high, ParseValue(field, ends[1]));
    } else if (parts.size() == 1) {
      high = low;
    }
    if (high < low) return Wrong(field, item, "is an empty range");
  }
  uint64_t bits = IsEvery(field, parts[0]) && step == 1 ? kEvery : 0;
  for (int64_t value = low; value <= high; value += step) bits |= uint64_t{1} << value;
  return bits;
}

absl::StatusOr<uint64_t> ParseField(const Field& field, absl::string_view text) {
  uint64_t bits = 0;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    FAIRLEAD_ASSIGN_OR_RETURN(const uint64_t more, ParseItem(field, item));
    bits |= more;
  }
  return bits;
}

absl::StatusOr<absl::string_view> ExpandMacro(absl::string_view expression) {
  static constexpr std::pair<absl::string_view, absl::string_view> kMacros[] = {
      {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
      {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
      {"@annually", "0 0 1 1 *"}};
  for (const auto& [macro, meaning] : kMacros) {
    if (expression == macro) return meaning;
  }
  return absl::InvalidArgumentError(absl::StrCat("cron: '", expression, "' is not supported"));
}

}  // namespace

absl::StatusOr<CronSchedule> CronSchedule::Parse(absl::string_view expression) {
  absl::string_view text = absl::StripAsciiWhitespace(expression);
  if (absl::StartsWith(text, "@")) {
    FAIRLEAD_ASSIGN_OR_RETURN(text, ExpandMacro(text));
  }
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("cron: '", expression, "' has ", fields.size(),
                     " fields, 5 are needed (minute hour day-of-month month day-of-week)"));
  }
  CronSchedule schedule;
  FAIRLEAD_ASSIGN_OR_RETURN(schedule.minutes_, ParseField(kMinute, fields[0]));
  FAIRLEAD_ASSIGN_OR_RETURN(schedule.hours_, ParseField(kHour, fields[1]));
  FAIRLEAD_ASSIGN_OR_RETURN(schedule.days_, ParseField(kDayOfMonth, fields[2]));
  FAIRLEAD_ASSIGN_OR_RETURN(schedule.months_, ParseField(kMonth, fields[3]));
  FAIRLEAD_ASSIGN_OR_RETURN(schedule.weekdays_, ParseField(kDayOfWeek, fields[4]));
  schedule.every_day_ = (schedule.days_ & kEvery) != 0;
  schedule.every_weekday_ = (schedule.weekdays_ & kEvery) != 0;
  schedule.weekdays_ = (schedule.weekdays_ | schedule.weekdays_ >> 7) & 0x7F;
  // A time after a leap day: an expression that ever fires has fired in the eight years before it.
  const absl::Time after_leap_day =
      absl::FromCivil(absl::CivilDay(2032, 12, 31), absl::UTCTimeZone());
  if (!schedule.LastAtOrBefore(after_leap_day)) {
    return absl::InvalidArgumentError(absl::StrCat("cron: '", expression, "' never fires"));
  }
  return schedule;
}

bool CronSchedule::FiresOn(absl::CivilDay day) const {
  if ((months_ >> day.month() & 1) == 0) return false;
  const bool by_day = (days_ >> day.day() & 1) != 0;
  // Abseil counts from Monday, cron from Sunday.
  const int weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7;
  const bool by_weekday = (weekdays_ >> weekday & 1) != 0;
  if (every_day_ || every_weekday_) return by_day && by_weekday;
  return by_day || by_weekday;
}

std::optional<int> CronSchedule::LastMinuteOfDay(int at_most) const {
  for (int minute = at_most; minute >= 0; --minute) {
    if ((hours_ >> (minute / kMinutesPerHour) & 1) != 0 &&
        (minutes_ >> (minute % kMinutesPerHour) & 1) != 0) {
      return minute;
    }
  }
  return std::nullopt;
}

bool CronSchedule::Matches(absl::Time time) const {
  const absl::CivilMinute minute = absl::ToCivilMinute(time, absl::UTCTimeZone());
  return FiresOn(absl::CivilDay(minute)) && (hours_ >> minute.hour() & 1) != 0 &&
         (minutes_ >> minute.minute() & 1) != 0;
}

std::optional<absl::Time> CronSchedule::LastOfDays(absl::Time time, int days_back) const {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return std::nullopt;
  const absl::CivilMinute now = absl::ToCivilMinute(time, absl::UTCTimeZone());
  absl::CivilDay day(now);
  int at_most = now.hour() * kMinutesPerHour + now.minute();
  for (int back = 0; back <= days_back; ++back, --day, at_most = kLastMinuteOfDay) {
    if (!FiresOn(day)) continue;
    if (const std::optional<int> minute = LastMinuteOfDay(at_most)) {
      return absl::FromCivil(absl::CivilMinute(day) + *minute, absl::UTCTimeZone());
    }
  }
  return std::nullopt;
}

std::optional<absl::Time> CronSchedule::LastAtOrBefore(absl::Time time) const {
  return LastOfDays(time, kMaxDaysBack);
}

bool CronSchedule::IsOpen(absl::Time now, absl::Duration duration) const {
  duration = std::min(duration, kLongestWindow);
  if (duration <= absl::ZeroDuration()) return false;
  const auto days = static_cast<int>(duration / absl::Hours(24)) + 1;
  const std::optional<absl::Time> last = LastOfDays(now, days);
  return last.has_value() && *last > now - duration;
}

}  // namespace fairlead
