#include "base/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "base/testing/random.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%d %H:%M:%S", text, absl::UTCTimeZone(), &time, &error))
      << error;
  return time;
}

CronSchedule Line(const std::string& line) {
  absl::StatusOr<CronSchedule> schedule = CronSchedule::Parse(line);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.value_or(CronSchedule());
}

TEST(CronTest, NamesMinutes) {
  struct Case {
    const char* line;
    const char* time;
    bool named;
  };
  const Case cases[] = {
      {"* * * * *", "2026-11-27 10:11:12", true},
      {"*/15 * * * *", "2026-11-27 10:30:59", true},
      {"*/15 * * * *", "2026-11-27 10:31:00", false},
      {"5/20 * * * *", "2026-11-27 10:45:00", true},
      {"5/20 * * * *", "2026-11-27 10:20:00", false},
      {"0 8-18/2 * * *", "2026-11-27 16:00:00", true},
      {"0 8-18/2 * * *", "2026-11-27 17:00:00", false},
      {"0 9 * * mon-fri", "2026-11-27 09:00:00", true},   // a Friday
      {"0 9 * * MON-FRI", "2026-11-28 09:00:00", false},  // a Saturday
      {"0 9 * * 7", "2026-11-29 09:00:00", true},         // Sunday is 7 too
      {"0 9 * * 0", "2026-11-29 09:00:00", true},
      {"0 9 1 * mon", "2026-11-30 09:00:00", true},  // either of two restricted days
      {"0 9 1 * mon", "2026-12-01 09:00:00", true},
      {"0 9 1 * mon", "2026-12-02 09:00:00", false},
      {"0 9 */2 * mon", "2026-11-30 09:00:00", true},  // "*/2" restricts: either of the two
      {"0 9 */2 * mon", "2026-12-01 09:00:00", true},
      {"0 9 */1 * mon", "2026-12-01 09:00:00", false},  // "*/1" and "*" restrict nothing: both
      {"0 9 3,* * mon", "2026-12-01 09:00:00", false},
      {"0 0 29 feb *", "2028-02-29 00:00:00", true},
      {"@weekly", "2026-11-29 00:00:00", true},
      {"@yearly", "2026-11-29 00:00:00", false},
      {" 1,2 , * * *", "2026-11-29 00:00:00", false},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<CronSchedule> schedule = CronSchedule::Parse(c.line);
    if (!schedule.ok()) {
      EXPECT_FALSE(c.named) << c.line << ": " << schedule.status();
      continue;
    }
    EXPECT_EQ(schedule->Matches(At(c.time)), c.named) << c.line << " at " << c.time;
  }
}

TEST(CronTest, FindsTheLastFiring) {
  struct Case {
    const char* expression;
    const char* now;
    const char* last;
  };
  const Case cases[] = {
      {"* * * * *", "2026-03-05 10:20:30", "2026-03-05 10:20:00"},
      {"0 * * * *", "2026-03-05 10:20:30", "2026-03-05 10:00:00"},
      {"0 * * * *", "2026-03-05 10:00:00", "2026-03-05 10:00:00"},
      {"30 6 * * *", "2026-03-05 06:29:59", "2026-03-04 06:30:00"},
      {"*/15 * * * *", "2026-03-05 10:44:59", "2026-03-05 10:30:00"},
      {"5/20 * * * *", "2026-03-05 10:44:59", "2026-03-05 10:25:00"},
      {"0 9-17/4 * * *", "2026-03-05 16:00:00", "2026-03-05 13:00:00"},
      {"0 0 1 * *", "2026-03-05 10:00:00", "2026-03-01 00:00:00"},
      {"0 0 31 * *", "2026-03-05 10:00:00", "2026-01-31 00:00:00"},
      {"0 0 * * mon", "2026-03-05 10:00:00", "2026-03-02 00:00:00"},
      {"0 0 * * 1-5", "2026-03-08 10:00:00", "2026-03-06 00:00:00"},
      {"0 0 * * 7", "2026-03-05 10:00:00", "2026-03-01 00:00:00"},
      {"0 0 * * 0", "2026-03-05 10:00:00", "2026-03-01 00:00:00"},
      {"0 12 ? JAN,jul *", "2026-03-05 10:00:00", "2026-01-31 12:00:00"},
      {"0 0 29 2 *", "2026-03-05 10:00:00", "2024-02-29 00:00:00"},
      {"0 0 29 2 *", "2103-03-05 10:00:00", "2096-02-29 00:00:00"},
      // Both days are restricted, so either may match. The 3rd is a Tuesday, the 4th a Wednesday.
      {"0 0 3 * wed", "2026-03-05 10:00:00", "2026-03-04 00:00:00"},
      {"0 0 3 * fri", "2026-03-05 10:00:00", "2026-03-03 00:00:00"},
      {"@weekly", "2026-03-05 10:00:00", "2026-03-01 00:00:00"},
      {"@monthly", "2026-03-05 10:00:00", "2026-03-01 00:00:00"},
      {"@yearly", "2026-03-05 10:00:00", "2026-01-01 00:00:00"},
      {" @daily ", "1969-12-31 23:59:59", "1969-12-31 00:00:00"},
  };
  for (const Case& c : cases) {
    const auto schedule = CronSchedule::Parse(c.expression);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(schedule->LastAtOrBefore(At(c.now)), At(c.last)) << c.expression << " at " << c.now;
  }
}

TEST(CronTest, RefusesWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "0 fields"},
      {"* * * *", "4 fields"},
      {"0 * * * * *", "6 fields"},
      {"60 * * * *", "cron field minute: '60' is not within 0-59"},
      {"* 24 * * *", "cron field hour"},
      {"* * 0 * *", "cron field day of month"},
      {"* * * 13 *", "cron field month"},
      {"* * * * 8", "cron field day of week"},
      {"* * * * someday", "'someday' is not a number or a name"},
      {"-1 * * * *", "not a number"},
      {"+1 * * * *", "not a number"},
      {"5-1 * * * *", "empty range"},
      {"1-2-3 * * * *", "not a range"},
      {"*/0 * * * *", "step"},
      {"*/2/2 * * * *", "more than one step"},
      {"1,,2 * * * *", "not a number"},
      {"? * * * *", "not a number"},
      {"99999999999999 * * * *", "not a number"},
      {"0 0 31 2 *", "never fires"},
      {"0 0 30 feb ?", "never fires"},
      {"@every 1h", "not supported"},
      {"@reboot", "not supported"},
  };
  for (const auto& [expression, why] : cases) {
    const auto schedule = CronSchedule::Parse(expression);
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument) << expression;
    EXPECT_THAT(std::string(schedule.status().message()), HasSubstr(why)) << expression;
  }
  const auto daily = CronSchedule::Parse("@daily");
  ASSERT_TRUE(daily.ok());
  EXPECT_FALSE(daily->LastAtOrBefore(absl::InfinitePast()));
  EXPECT_FALSE(daily->LastAtOrBefore(absl::InfiniteFuture()));
}

// The oracle asks minute by minute whether the expression matches.
TEST(CronTest, AgreesWithASearchMinuteByMinute) {
  testing::Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 60; ++round) {
    const auto pick = [&](int64_t low, int64_t high) { return random.Between(low, high); };
    const int64_t minute = pick(0, 59), hour = pick(0, 23), day = pick(1, 28), weekday = pick(0, 6);
    const bool any_hour = random.OneIn(2), any_day = random.OneIn(2), any_weekday = random.OneIn(2);
    const auto field = [](bool any, int64_t value) {
      return any ? std::string("*") : absl::StrCat(value);
    };
    const std::string expression =
        absl::StrCat(minute, " ", field(any_hour, hour), " ", field(any_day, day), " * ",
                     field(any_weekday, weekday));
    const auto schedule = CronSchedule::Parse(expression);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const absl::Time now = At("2025-01-01 00:00:00") + absl::Minutes(random.Between(0, 1'000'000));
    absl::Time expected = now;
    for (;; expected -= absl::Minutes(1)) {
      const auto cs = absl::ToTM(expected, absl::UTCTimeZone());
      const bool day_ok = cs.tm_mday == day, weekday_ok = cs.tm_wday == weekday;
      const bool date = any_day && any_weekday ? true
                        : any_day              ? weekday_ok
                        : any_weekday          ? day_ok
                                               : day_ok || weekday_ok;
      if (cs.tm_min == minute && (any_hour || cs.tm_hour == hour) && date) break;
    }
    ASSERT_EQ(schedule->LastAtOrBefore(now), expected) << expression << " at " << now;
  }
}

// A window is open if one of the minutes behind us is named: minute by minute.
TEST(CronTest, WindowsAgreeWithASearchByMinutes) {
  testing::Random random;
  SCOPED_TRACE(random.Describe());
  const auto below = [&random](int64_t n) { return random.Between(0, n - 1); };
  for (int i = 0; i < 400; ++i) {
    const auto field = [&](int64_t lowest, int64_t highest) {
      const int64_t value = lowest + below(highest - lowest + 1);
      switch (below(4)) {
        case 0:
          return std::string("*");
        case 1:
          return "*/" + std::to_string(1 + below(highest));
        default:
          return std::to_string(value);
      }
    };
    const std::string line = field(0, 59) + " " + field(0, 23) + " " + field(1, 28) + " " +
                             field(1, 12) + " " + field(0, 6);
    const CronSchedule schedule = Line(line);
    const absl::Time now = At("2026-11-27 00:00:00") + absl::Seconds(below(400 * 86400));
    const absl::Duration duration = absl::Seconds(1 + below(3 * 86400));
    bool open = false;
    const absl::Time minute = absl::FromUnixSeconds(absl::ToUnixSeconds(now) / 60 * 60);
    for (absl::Time named = minute; named > now - duration; named -= absl::Minutes(1)) {
      open = open || schedule.Matches(named);
    }
    EXPECT_EQ(schedule.IsOpen(now, duration), open)
        << line << " at " << absl::FormatTime(now, absl::UTCTimeZone()) << " for " << duration;
  }
}

}  // namespace
}  // namespace fairlead
