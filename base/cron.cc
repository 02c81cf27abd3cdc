#include "base/cron.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "base/status_macros.h"

namespace fairlead {
namespace {

struct CronField {
  const char* name;
  int lowest, highest;
  std::vector<absl::string_view> words;  // of lowest, lowest + 1, ..
};

absl::Status BadField(const CronField& field, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(field.name, " \"", text,
                                                 "\": must be *, or numbers ", field.lowest, " to ",
                                                 field.highest, " with \"-\", \"/\" and \",\""));
}

absl::StatusOr<int> ParseValue(const CronField& field, absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < field.words.size(); ++i) {
    if (lower == field.words[i]) return field.lowest + static_cast<int>(i);
  }
  int value = 0;
  const bool digits = !text.empty() && text.size() <= 3 &&
                      std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &value) || value < field.lowest || value > field.highest) {
    return BadField(field, text);
  }
  return value;
}

// One part of a list: "*", "a", "a-b", each perhaps with "/step".
template <size_t N>
absl::Status AddPart(const CronField& field, absl::string_view part, std::bitset<N>& out) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(part, absl::MaxSplits('/', 1));
  const bool has_step = part.size() != halves.first.size();
  int step = 1;
  if (has_step) {
    FAIRLEAD_ASSIGN_OR_RETURN(step, ParseValue({field.name, 1, field.highest, {}}, halves.second));
  }
  int from = field.lowest, to = field.highest;
  if (halves.first != "*") {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(halves.first, absl::MaxSplits('-', 1));
    const bool is_range = halves.first.size() != ends.first.size();
    FAIRLEAD_ASSIGN_OR_RETURN(from, ParseValue(field, ends.first));
    to = has_step ? field.highest : from;
    if (is_range) {
      FAIRLEAD_ASSIGN_OR_RETURN(to, ParseValue(field, ends.second));
    }
    if (to < from) return BadField(field, part);
  }
  for (int value = from; value <= to; value += step) out.set(static_cast<size_t>(value));
  return absl::OkStatus();
}

template <size_t N>
absl::Status ParseField(const CronField& field, absl::string_view text, std::bitset<N>& out) {
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    FAIRLEAD_RETURN_IF_ERROR(AddPart(field, part, out));
  }
  return absl::OkStatus();
}

absl::string_view WithoutNickname(absl::string_view line) {
  if (line == "@hourly") return "0 * * * *";
  if (line == "@daily" || line == "@midnight") return "0 0 * * *";
  if (line == "@weekly") return "0 0 * * 0";
  if (line == "@monthly") return "0 0 1 * *";
  if (line == "@yearly" || line == "@annually") return "0 0 1 1 *";
  return line;
}

}  // namespace

absl::StatusOr<CronSchedule> CronSchedule::Parse(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(
      WithoutNickname(absl::StripAsciiWhitespace(line)), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 5) {
    return absl::InvalidArgumentError(absl::StrCat("\"", line.substr(0, 100),
                                                   "\": must have five fields (minute, hour, day "
                                                   "of month, month, day of week), or be @hourly, "
                                                   "@daily, @weekly, @monthly or @yearly"));
  }
  CronSchedule schedule;
  FAIRLEAD_RETURN_IF_ERROR(ParseField({"minute", 0, 59, {}}, fields[0], schedule.minutes_));
  FAIRLEAD_RETURN_IF_ERROR(ParseField({"hour", 0, 23, {}}, fields[1], schedule.hours_));
  FAIRLEAD_RETURN_IF_ERROR(ParseField({"day of month", 1, 31, {}}, fields[2], schedule.days_));
  FAIRLEAD_RETURN_IF_ERROR(ParseField(
      {"month",
       1,
       12,
       {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
      fields[3], schedule.months_));
  FAIRLEAD_RETURN_IF_ERROR(
      ParseField({"day of week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
                 fields[4], schedule.weekdays_));
  if (schedule.weekdays_.test(7)) schedule.weekdays_.set(0);
  schedule.weekdays_.reset(7);
  schedule.any_day_ = fields[2].front() == '*';
  schedule.any_weekday_ = fields[4].front() == '*';
  return schedule;
}

bool CronSchedule::MatchesDay(absl::CivilDay day) const {
  if (!months_.test(static_cast<size_t>(day.month()))) return false;
  // absl::Weekday begins with Monday.
  const size_t weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool by_day = days_.test(static_cast<size_t>(day.day()));
  const bool by_weekday = weekdays_.test(weekday);
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

bool CronSchedule::Matches(absl::Time time) const {
  const absl::CivilMinute minute = absl::ToCivilMinute(time, absl::UTCTimeZone());
  return MatchesDay(absl::CivilDay(minute)) && hours_.test(static_cast<size_t>(minute.hour())) &&
         minutes_.test(static_cast<size_t>(minute.minute()));
}

bool CronSchedule::IsOpen(absl::Time now, absl::Duration duration) const {
  if (duration <= absl::ZeroDuration() || minutes_.none() || hours_.none()) return false;
  const absl::TimeZone utc = absl::UTCTimeZone();
  const absl::Time earliest = now - std::min(duration, kLongestWindow);
  const absl::CivilMinute last = absl::ToCivilMinute(now, utc);
  for (absl::CivilDay day(last); absl::FromCivil(day + 1, utc) > earliest; --day) {
    if (!MatchesDay(day)) continue;
    // The latest named minute of the day that is not after now.
    for (int hour = 23; hour >= 0; --hour) {
      if (!hours_.test(static_cast<size_t>(hour))) continue;
      for (int minute = 59; minute >= 0; --minute) {
        if (!minutes_.test(static_cast<size_t>(minute))) continue;
        const absl::CivilMinute named(day.year(), day.month(), day.day(), hour, minute);
        if (named > last) continue;
        return absl::FromCivil(named, utc) > earliest;
      }
    }
  }
  return false;
}

}  // namespace fairlead
