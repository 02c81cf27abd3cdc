#include "base/cron.h"

#include <random>
#include <string>

#include "absl/time/civil_time.h"
#include "gtest/gtest.h"

namespace fairlead {
namespace {

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%d %H:%M:%S", text, &time, &error)) << error;
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
      {"0 9 */2 * mon", "2026-11-30 09:00:00", false},  // "*/2" restricts nothing: both
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

TEST(CronTest, WrongLinesAreRefusedWithTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must have five fields"},
      {"* * * *", "must have five fields"},
      {"* * * * * *", "must have five fields"},
      {"60 * * * *", "minute \"60\""},
      {"-1 * * * *", "minute \"\""},
      {"* 24 * * *", "hour \"24\""},
      {"* * 0 * *", "day of month \"0\""},
      {"* * * 13 *", "month \"13\""},
      {"* * * * 8", "day of week \"8\""},
      {"5-1 * * * *", "minute \"5-1\""},
      {"*/0 * * * *", "minute \"0\""},
      {"1,,2 * * * *", "minute \"\""},
      {"99999999999999999999 * * * *", "minute \"9999"},
      {"* * * foo *", "month \"foo\""},
      {"@never", "must have five fields"},
  };
  for (const auto& [line, part] : cases) {
    const absl::StatusOr<CronSchedule> schedule = CronSchedule::Parse(line);
    ASSERT_FALSE(schedule.ok()) << line;
    EXPECT_NE(schedule.status().message().find(part), absl::string_view::npos)
        << line << ": " << schedule.status();
  }
}

// A window is open if one of the minutes behind us is named: minute by minute.
TEST(CronTest, WindowsAgreeWithASearchByMinutes) {
  std::mt19937 random(20261127);  // NOLINT: the same cases each time
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int i = 0; i < 400; ++i) {
    const auto field = [&](int lowest, int highest) {
      const int value = lowest + below(highest - lowest + 1);
      switch (below(4)) {
        case 0:
          return std::string("*");
        case 1:
          return "*/" + std::to_string(1 + below(highest));
        default:
          return std::to_string(value);
      }
    };
    const std::string line = field(0, 59) + " " + field(0, 23) + " " + field(1, 31) + " " +
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
