#include "demo/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/fairlead/inspect/test_views.h"
#include "cmd/fairlead/terminal/table.h"

namespace fairlead::demo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LiveFrame SampleFrame(const core::View* view) {
  LiveFrame frame;
  frame.view = view;
  frame.title = "two-team-day";
  frame.note = "research submits a sweep";
  for (int i = 0; i < 30; ++i) {
    frame.events.push_back(absl::StrCat("10:00:", i < 10 ? "0" : "", i, "  event ", i));
  }
  frame.cost_micro_usd = 12'340'000;
  frame.reactive_cost_micro_usd = 45'600'000;
  return frame;
}

// The last lines of the sample's events, from line `first` on.
std::string Events(int first) {
  std::vector<std::string> lines;
  for (int i = first; i < 30; ++i) {
    lines.push_back(absl::StrCat(" 10:00:", i < 10 ? "0" : "", i, "  event ", i));
  }
  return absl::StrJoin(lines, "\n");
}

std::string Draw(const LiveFrame& frame, int columns, int rows) {
  return absl::StrJoin(DrawLive(frame, {columns, rows}, /*color=*/false), "\n");
}

TEST(QueueBarTest, ShowsUseQuotaAndWhatIsAboveIt) {
  EXPECT_EQ(QueueBar(0, 4000, 8000, 8),
            "\xC2\xB7\xC2\xB7\xC2\xB7\xE2\x94\x82\xC2\xB7\xC2\xB7\xC2\xB7\xC2\xB7");
  EXPECT_EQ(QueueBar(2000, 4000, 8000, 8),
            "\xE2\x96\x88\xE2\x96\x88\xC2\xB7\xE2\x94\x82\xC2\xB7\xC2\xB7\xC2\xB7\xC2\xB7");
  EXPECT_EQ(
      QueueBar(6000, 4000, 8000, 8),
      "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x92\xE2\x96\x92\xC2\xB7\xC2\xB7");
  EXPECT_EQ(QueueBar(1, -1, 100000, 2), "\xE2\x96\x88\xC2\xB7") << "a little is not nothing";
  EXPECT_EQ(QueueBar(5000, -1, 0, 2), "\xC2\xB7\xC2\xB7");
}

TEST(LiveViewTest, FitsEverySize) {
  const core::View view = cmd::testing::SampleView();
  const LiveFrame frame = SampleFrame(&view);
  for (int columns : {0, 1, 20, 40, 80, 81, 120, 300}) {
    for (int rows : {0, 1, 5, 10, 24, 40, 100}) {
      const std::vector<std::string> lines = DrawLive(frame, {columns, rows}, false);
      EXPECT_EQ(lines.size(), static_cast<size_t>(rows));
      for (const std::string& line : lines) {
        EXPECT_LE(cmd::DisplayWidth(line), static_cast<size_t>(columns)) << line;
      }
    }
  }
}

TEST(LiveViewTest, At80x24) {
  const core::View view = cmd::testing::SampleView();
  EXPECT_EQ(Draw(SampleFrame(&view), 80, 24),
            absl::StrCat(
                R"(Fairlead Mon 10:00:00  3 nodes, 3 GPUs  $3.02/h  spent $12.34 (reactive $45.60)
two-team-day: research submits a sweep
QUEUES                    GPUs                   used  quota  limit  waiting
 gpu-platform             █████████████······│      8     12      -        0
   research               ███████▒▒▒▒▒▒·······      8      4      8        1
   production-inference   ············│·······      0      8     12        1
NODES                        GPUs used       $/h
 (no type)                           -         -  1 Ready
 g5.xlarge                         0/2     $2.01  1 Ordered, 1 Starting
 g5.xlarge (spot)                  1/1     $1.01  1 Ready
WAITING (3 pods)
 research/sweep-09-0      QueueLimitReached 1h  Queue research has reached its …
 serving/chat             NodesRequested 2m  Waiting for 2 requested nodes (fl-…
EVENTS
)",
                Events(20)));
}

TEST(LiveViewTest, At120x40) {
  const core::View view = cmd::testing::SampleView();
  EXPECT_EQ(Draw(SampleFrame(&view), 120, 40),
            absl::StrCat(
                R"(Fairlead Mon 10:00:00  3 nodes, 3 GPUs  $3.02/h  spent $12.34 (reactive $45.60)
two-team-day: research submits a sweep
QUEUES                          GPUs                                       used  quota  limit  waiting
 gpu-platform                   ███████████████████████████············│      8     12      -        0
   research                     █████████████▒▒▒▒▒▒▒▒▒▒▒▒▒▒·············      8      4      8        1
   production-inference         ··························│·············      0      8     12        1
NODES                              GPUs used       $/h
 (no type)                                 -         -  1 Ready
 g5.xlarge                               0/2     $2.01  1 Ordered, 1 Starting
 g5.xlarge (spot)                        1/1     $1.01  1 Ready
WAITING (3 pods)
 research/sweep-09-0            QueueLimitReached 1h  Queue research has reached its limit of 8 GPUs: 8 in use, 1 reque…
 serving/chat                   NodesRequested 2m  Waiting for 2 requested nodes (fl-1 and fl-2), expected at 2026-03-0…
EVENTS
)",
                Events(4)));
}

TEST(LiveViewTest, WhatDoesNotFitIsCounted) {
  core::View view = cmd::testing::SampleView();
  for (int i = 0; i < 40; ++i) {
    view.queues.push_back(cmd::testing::MakeQueue(absl::StrCat("team-", i), "", 0, 0, 1, 1));
  }
  view.waiting.clear();
  for (int i = 0; i < 40; ++i) {
    core::WaitingRow row = cmd::testing::LimitRow();
    row.queue = absl::StrCat("team-", i);
    view.waiting.push_back(row);
  }
  const std::string screen = Draw(SampleFrame(&view), 80, 24);
  EXPECT_THAT(screen, HasSubstr("team-0"));
  EXPECT_THAT(screen, HasSubstr("and 37 more")) << "queues";
  EXPECT_THAT(screen, HasSubstr("and 36 more")) << "workloads";
  EXPECT_THAT(screen, HasSubstr("WAITING (40 pods)"));
  EXPECT_THAT(screen, HasSubstr("EVENTS\n"));
}

TEST(LiveViewTest, EqualReasonsAreOneLine) {
  core::View view = cmd::testing::SampleView();
  view.waiting = {cmd::testing::LimitRow(), cmd::testing::LimitRow(), cmd::testing::LimitRow()};
  const std::string screen = Draw(SampleFrame(&view), 120, 24);
  EXPECT_THAT(screen, HasSubstr("research/sweep-09-0 +2"));
  EXPECT_THAT(screen, HasSubstr("WAITING (3 pods)"));
}

TEST(LiveViewTest, AnEmptyClusterIsAScreenToo) {
  core::View view;
  view.at = cmd::testing::At(0);
  LiveFrame frame;
  frame.view = &view;
  const std::string screen = Draw(frame, 80, 24);
  EXPECT_THAT(screen, HasSubstr("0 nodes"));
  EXPECT_THAT(screen, HasSubstr("nothing"));
  EXPECT_THAT(screen, Not(HasSubstr("spent")));
}

TEST(LiveViewTest, ColorOnlyAddsSequences) {
  core::View view = cmd::testing::SampleView();
  view.waiting[0].message = "evil \x1b[2J";
  const LiveFrame frame = SampleFrame(&view);
  const std::vector<std::string> plain = DrawLive(frame, {80, 24}, false);
  const std::vector<std::string> colored = DrawLive(frame, {80, 24}, true);
  EXPECT_THAT(absl::StrJoin(plain, "\n"), Not(HasSubstr("\x1b")));
  ASSERT_EQ(plain.size(), colored.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    std::string stripped;
    for (size_t at = 0; at < colored[i].size(); ++at) {
      if (colored[i][at] != '\x1b') {
        stripped += colored[i][at];
        continue;
      }
      at = colored[i].find('m', at);
      ASSERT_NE(at, std::string::npos);
    }
    EXPECT_EQ(stripped, plain[i]);
  }
}

}  // namespace
}  // namespace fairlead::demo
