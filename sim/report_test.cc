#include "sim/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "simdjson.h"

namespace fairlead::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TimelineEvent Event(int second, const std::string& event, const std::string& object) {
  return {.time = absl::UnixEpoch() + absl::Seconds(second), .event = event, .object = object};
}

TEST(LogText, TellsEqualThingsOfOneSecondInOneLine) {
  std::vector<TimelineEvent> timeline;
  for (const char* pod : {"ns/a", "ns/b", "ns/c", "ns/d"}) {
    timeline.push_back(Event(1, "verdict", pod));
    timeline.back().code = "QueueLimitReached";
    timeline.back().text = "the reason";
  }
  timeline.push_back(Event(1, "verdict", "ns/e"));
  timeline.back().code = "NodesRequested";
  timeline.push_back(Event(2, "pod_bound", "ns/a"));
  EXPECT_EQ(LogText(timeline),
            "00:00:01    4 pods wait (QueueLimitReached): ns/a, ns/b, ns/c, ...; the reason\n"
            "00:00:01    1 pod waits (NodesRequested): ns/e\n"
            "00:00:02    1 pod placed: ns/a\n");
}

TEST(ReportJson, IsJsonWithTheKeysThatToolsRead) {
  Report report;
  report.name = "a \"day\"\n";
  report.timeline = {Event(1, "note", "")};
  report.timeline[0].text = "tab\there";
  report.episodes = {
      {"ns/a", "q", "QueueLimitReached", absl::UnixEpoch(), absl::UnixEpoch() + absl::Hours(1)},
      {"ns/b", "q", "GpuCapReached", absl::UnixEpoch(), absl::InfiniteFuture()}};
  report.bill.node_seconds = 5400;
  report.bill.cost_micro_usd = 1'500'001;
  report.bill.reactive_cost_micro_usd = 2'000'000;
  core::NodeRow bought;
  bought.node_request = "r";
  report.end.nodes = {bought, core::NodeRow()};
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const std::string json = ReportJson(report);
  ASSERT_EQ(parser.parse(json).get(root), simdjson::SUCCESS) << json;
  EXPECT_EQ(std::string_view(root["timeline"].at(0)["time"]), "1970-01-01T00:00:01+00:00");
  EXPECT_EQ(std::string_view(root["timeline"].at(0)["text"]), "tab\there");
  ASSERT_EQ(root["waiting"].get_array().size(), 1u);
  EXPECT_EQ(std::string_view(root["waiting"].at(0)["pod"]), "ns/b");
  EXPECT_EQ(std::string_view(root["waiting"].at(0)["code"]), "GpuCapReached");
  ASSERT_EQ(root["waited"].get_array().size(), 2u);
  EXPECT_EQ(std::string_view(root["waited"].at(0)["until"]), "1970-01-01T01:00:00+00:00");
  EXPECT_DOUBLE_EQ(double(root["bill"]["node_hours"]), 1.5);
  EXPECT_DOUBLE_EQ(double(root["bill"]["cost_usd"]), 1.500001);
  EXPECT_DOUBLE_EQ(double(root["bill"]["reactive_cost_usd"]), 2.0);
  EXPECT_EQ(int64_t(root["bill"]["policy_blocked_nodes"]), 0);
  EXPECT_EQ(int64_t(root["nodes_at_end"]), 1) << "nodes of others do not count";
}

TEST(ViewText, ShowsUnlimitedAmountsAndShortensReasons) {
  core::View view;
  view.at = absl::UnixEpoch();
  core::QueueRow queue;
  queue.name = "research";
  queue.resources = {{"nvidia.com/gpu", 4000, model::kUnlimited, 4500, 3000, 9000}};
  view.queues = {queue};
  core::WaitingRow waiting;
  waiting.workload = "ns/a";
  waiting.message = std::string(119, 'x') + "\xC3\xA9" + "and more";
  view.waiting = {waiting};
  const std::string text = ViewText(view);
  EXPECT_THAT(text, HasSubstr("research  3     4      -      4.5"));
  EXPECT_THAT(text, HasSubstr(std::string(119, 'x') + "..."));
  EXPECT_THAT(text, Not(HasSubstr("more"))) << "and no half letter";
}

}  // namespace
}  // namespace fairlead::sim
