// Usage that another system reports, and the windows of both sources.
#include "queues/reported_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "queues/fair_share.h"
#include "queues/test_support.h"
#include "queues/usage_window.h"

namespace fairlead::queues {
namespace {

using model::kCpu;
using model::kGpu;
using ::testing::HasSubstr;

absl::Time Noon() { return absl::FromUnixSeconds(1'767'268'800); }  // 2026-01-01 12:00

class ReportedUsageTest : public ::testing::Test {
 protected:
  static model::UsageReport Report(absl::Time at, int64_t nano) {
    return {at, {{"a", "nvidia.com/gpu", nano}}};
  }
  int64_t Of(QueueId queue, model::ResourceIndex resource, absl::Time now) const {
    const auto usage = reported_.UsageOf(tree_, now);
    EXPECT_TRUE(usage.ok()) << usage.status();
    return usage.ok() ? (*usage)[queue][resource] : -1;
  }

  model::ResourceNames names_;
  QueueTree tree_{names_};
  QueueId top_ = tree_.Upsert(MakeQueue("top"));
  QueueId a_ = tree_.Upsert(MakeQueue("a", "top"));
  QueueId b_ = tree_.Upsert(MakeQueue("b", "top"));
  ReportedUsage reported_{absl::Minutes(5)};
};

TEST_F(ReportedUsageTest, NothingIsKnownBeforeTheFirstReport) {
  EXPECT_THAT(reported_.UsageOf(tree_, Noon()).status().message(), HasSubstr("no report yet"));
  EXPECT_EQ(reported_.stale_at(), absl::InfiniteFuture());
  EXPECT_EQ(reported_.as_of(), absl::InfinitePast());
}

TEST_F(ReportedUsageTest, AReportIsBelievedForTheStalenessPeriod) {
  reported_.Take(Report(Noon(), 250'000'000));
  EXPECT_EQ(Of(a_, kGpu, Noon()), 250'000'000);
  EXPECT_EQ(reported_.stale_at(), Noon() + absl::Minutes(5));
  EXPECT_EQ(Of(a_, kGpu, Noon() + absl::Minutes(5) - absl::Nanoseconds(1)), 250'000'000);
  const auto stale = reported_.UsageOf(tree_, Noon() + absl::Minutes(5));
  EXPECT_TRUE(absl::IsUnavailable(stale.status()));
  EXPECT_THAT(stale.status().message(), HasSubstr("the last report is 5m old"));
  // The next report is valid.
  reported_.Take(Report(Noon() + absl::Minutes(6), 1));
  EXPECT_EQ(Of(a_, kGpu, Noon() + absl::Minutes(6)), 1);
}

TEST_F(ReportedUsageTest, AnOlderReportDoesNotReplaceANewerOne) {
  reported_.Take(Report(Noon(), 7));
  const uint64_t version = reported_.version();
  reported_.Take(Report(Noon() - absl::Seconds(1), 8));
  EXPECT_EQ(Of(a_, kGpu, Noon()), 7);
  EXPECT_EQ(reported_.version(), version);
  reported_.Take(Report(Noon(), 9));
  EXPECT_EQ(Of(a_, kGpu, Noon()), 9);
  EXPECT_GT(reported_.version(), version);
}

TEST_F(ReportedUsageTest, UnknownNamesArePassedOverAndAmountsBounded) {
  model::UsageReport report{Noon(), {}};
  report.parts = {{"a", "cpu", -5},
                  {"a", "nvidia.com/gpu", 2'000'000'000},
                  {"b", "example.com/unheard-of", 3},
                  {"gone", "cpu", 4}};
  reported_.Take(report);
  EXPECT_EQ(Of(a_, kCpu, Noon()), 0);
  EXPECT_EQ(Of(a_, kGpu, Noon()), kNano);
  EXPECT_EQ(Of(b_, kGpu, Noon()), 0);
  // A queue that is created later has its own history, without a new report.
  const QueueId gone = tree_.Upsert(MakeQueue("gone"));
  EXPECT_EQ(Of(gone, kCpu, Noon()), 4);
}

// ---- windows

TEST(UsageWindowTest, BeginsWhereItsTypeSays) {
  struct Case {
    const char* what;
    WindowType type;
    absl::Duration window;
    absl::Time tumbling_start;
    const char* cron;
    const char* now;
    const char* start;
  };
  const absl::Time epoch = absl::UnixEpoch();
  const absl::Time ten = absl::FromUnixSeconds(1'736'935'200);  // 2025-01-15 10:00, a Wednesday
  const Case cases[] = {
      {"sliding", WindowType::kSliding, absl::Hours(1), epoch, "", "2025-01-15T12:30:00Z",
       "2025-01-15T11:30:00Z"},
      {"within a tumbling window", WindowType::kTumbling, absl::Hours(1), ten, "",
       "2025-01-15T12:30:00Z", "2025-01-15T12:00:00Z"},
      {"at its boundary", WindowType::kTumbling, absl::Hours(1), ten, "", "2025-01-15T13:00:00Z",
       "2025-01-15T13:00:00Z"},
      {"before the first boundary", WindowType::kTumbling, absl::Hours(1), ten, "",
       "2025-01-15T09:15:00Z", "2025-01-15T09:00:00Z"},
      {"boundaries off the hour", WindowType::kTumbling, absl::Hours(1), ten + absl::Seconds(930),
       "", "2025-01-15T12:45:30Z", "2025-01-15T12:15:30Z"},
      {"weekly cron", WindowType::kCron, absl::Hours(1), epoch, "0 12 * * 1",
       "2025-01-15T15:00:00Z", "2025-01-13T12:00:00Z"},
      {"monthly cron", WindowType::kCron, absl::Hours(1), epoch, "0 0 1 * *",
       "2025-03-31T23:00:00Z", "2025-03-01T00:00:00Z"},
  };
  const auto parse = [](const char* text) {
    absl::Time time;
    EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) << text;
    return absl::ToUnixMillis(time);
  };
  for (const Case& c : cases) {
    UsageOptions options;
    options.window_type = c.type;
    options.window = c.window;
    options.tumbling_start = c.tumbling_start;
    options.cron = c.cron;
    const auto window = UsageWindow::Create(options);
    ASSERT_TRUE(window.ok()) << c.what << ": " << window.status();
    EXPECT_EQ(window->Start(parse(c.now)), parse(c.start)) << c.what;
  }
}

}  // namespace
}  // namespace fairlead::queues
