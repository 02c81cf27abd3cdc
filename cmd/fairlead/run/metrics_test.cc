#include "cmd/fairlead/run/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cmd/fairlead/run/stats_testing.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Everything known, so that every metric has a sample.
AppStats FullApp() {
  AppStats stats = testing::StatsOfSyncedKinds(absl::Seconds(3));
  for (kube::ReflectorStats& kind : stats.kinds) kind.objects = 5;
  stats.writes.requests_by_verb = {{"POST", 4}, {"GET", 1}};
  stats.writes.request_latency.Add(absl::Milliseconds(3));
  stats.writes.shed = 7;
  stats.writes.shed_events = 5;
  stats.elects = true;
  return stats;
}

OwnerStats FullOwner() {
  OwnerStats stats;
  stats.known = true;
  stats.kai_status = true;
  stats.at = absl::FromUnixSeconds(100);
  stats.counters.results = {{{"bind", "OK"}, 9}, {{"bind", "NOT_FOUND"}, 2}, {{"evict", "OK"}, 1}};
  stats.counters.decisions.Add(absl::Milliseconds(3));
  stats.totals.waiting = {{verdict::Code::kGated, {1, 2}},
                          {verdict::Code::kQueueLimitReached, {3, 4}},
                          {verdict::Code::kBindingRefused, {1, 5}}};
  stats.totals.unschedulable_pods = {{{"NodeResourcesFit", "kai-scheduler"}, 4}};
  stats.loop.attempts = {{"fairlead", {9, 12, 2}}, {"kai-scheduler", {1, 0, 0}}};
  stats.loop.attempts["fairlead"].scheduled_us.Add(1'500);
  stats.loop.attempts["fairlead"].bound_us.Add(150);
  stats.loop.attempts["fairlead"].unprepared_us.Add(1'000'000);
  stats.loop.plugins.Add("VolumeBinding", "PreBind", "Success", absl::Microseconds(14));
  stats.loop.permit_denied_us.Add(2'000'000);
  stats.loop.pods_added = 7;
  stats.loop.pods_backing_off = 3;
  stats.totals.assumed_pods = 6;
  stats.totals.suspended_workloads = 2;
  stats.loop.preemption_attempts = 3;
  for (const int64_t victims : {1, 3, 65}) stats.loop.preemption_victims.Add(victims);
  stats.loop.scheduling_latency_us.Add(10'000);
  stats.loop.scheduling_latency_us.Add(25'000);
  stats.totals.nodes = {{"Ready", 6}};
  core::QueueRow queue;
  queue.name = "team \"a\"";
  core::QueueResourceRow gpu;
  gpu.resource = "nvidia.com/gpu";
  gpu.quota = 2500;
  gpu.limit = model::kUnlimited;
  queue.resources.push_back(gpu);
  core::QueueResourceRow cpu, memory;
  cpu.resource = "cpu";
  cpu.allocated = 3500;
  memory.resource = "memory";
  memory.quota = model::kUnlimited;
  memory.fair_share = 4'500'000'000;
  queue.resources.push_back(cpu);
  queue.resources.push_back(memory);
  stats.totals.queues.push_back(queue);
  return stats;
}

std::string Text(const AppStats& app, const OwnerStats& owner) {
  HostStats host;
  host.version = "1.2.3";
  host.webhook = WebhookStats{.admitted = 7, .invalid = 2};
  host.spans = SpanStats{.sent = 5, .failed = 3, .dropped = 2};
  return server::Expose(MetricsOf({{std::nullopt, app, owner}}, host, absl::FromUnixSeconds(102)));
}

TEST(MetricsTest, ValuesAreInBaseUnitsOfPrometheus) {
  const std::string text = Text(FullApp(), FullOwner());
  EXPECT_THAT(text, HasSubstr("scheduler_schedule_attempts_total{profile=\"fairlead\",result="
                              "\"scheduled\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("result=\"error\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"gated\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"unschedulable\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"backoff\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_quota{queue=\"team \\\"a\\\"\",resource="
                              "\"nvidia.com/gpu\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_limit{queue=\"team \\\"a\\\"\",resource="
                              "\"nvidia.com/gpu\"} +Inf\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_kind_last_word_seconds{kind=\"Pod\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_kube_events_dropped_total 5\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_writes_dropped_total 2\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_owner_stats_age_seconds 2\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_decision_duration_seconds_bucket{le=\"0.004\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_decision_duration_seconds_bucket{le=\"0.002\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_build_info{version=\"1.2.3\"} 1\n"));
}

TEST(MetricsTest, DecisionsAsKubeSchedulerTellsThem) {
  const std::string text = Text(FullApp(), FullOwner());
  EXPECT_THAT(text, HasSubstr("scheduler_schedule_attempts_total{profile=\"fairlead\",result="
                              "\"unschedulable\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_schedule_attempts_total{profile=\"kai-scheduler\",result="
                              "\"scheduled\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_preemption_attempts_total 3\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\",profile="
                              "\"kai-scheduler\"} 4\n"));
  std::set<std::string> bounds;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "scheduler_preemption_victims_bucket")) bounds.emplace(line);
  }
  const std::string name = "scheduler_preemption_victims_bucket{le=";
  EXPECT_THAT(bounds, ::testing::UnorderedElementsAre(name + "\"1\"} 1", name + "\"2\"} 1",
                                                      name + "\"4\"} 2", name + "\"8\"} 2",
                                                      name + "\"16\"} 2", name + "\"32\"} 2",
                                                      name + "\"64\"} 2", name + "\"+Inf\"} 3"));
  EXPECT_THAT(text, HasSubstr("scheduler_preemption_victims_sum 69\n"));
  const std::string sli = "scheduler_pod_scheduling_sli_duration_seconds";
  EXPECT_THAT(text, HasSubstr(sli + "_bucket{le=\"0.01\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(sli + "_bucket{le=\"0.02\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(sli + "_bucket{le=\"0.04\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(sli + "_bucket{le=\"5242.88\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(sli + "_sum 0.035\n"));
}

TEST(MetricsTest, DurationsAsKubeSchedulerTellsThem) {
  const std::string text = Text(FullApp(), FullOwner());
  const auto bucket = [&](const std::string& name, const std::string& labels, const char* bound,
                          int count) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("scheduler_", name, "_duration_seconds_bucket{",
                                             labels, ",le=\"", bound, "\"} ", count, "\n")));
  };
  const std::string scheduled = "profile=\"fairlead\",result=\"scheduled\"";
  bucket("scheduling_attempt", scheduled, "0.001", 0);
  bucket("scheduling_attempt", scheduled, "0.002", 1);
  bucket("scheduling_attempt", scheduled, "16.384", 1);
  const std::string bind = "extension_point=\"Bind\",profile=\"fairlead\",status=\"Success\"";
  bucket("framework_extension_point", bind, "0.0001", 0);
  bucket("framework_extension_point", bind, "0.0002", 1);
  const std::string pre = "extension_point=\"PreBind\",profile=\"fairlead\",status=\"Error\"";
  bucket("framework_extension_point", pre, "0.2048", 0);
  bucket("framework_extension_point", pre, "+Inf", 1);
  const std::string plugin =
      "extension_point=\"PreBind\",plugin=\"VolumeBinding\",status=\"Success\"";
  bucket("plugin_execution", plugin, "1e-05", 0);
  bucket("plugin_execution", plugin, "1.5e-05", 1);
  bucket("permit_wait", "result=\"Unschedulable\"", "1.024", 0);
  bucket("permit_wait", "result=\"Unschedulable\"", "2.048", 1);
  EXPECT_THAT(text, HasSubstr("scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\","
                              "queue=\"active\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_queue_incoming_pods_total{event="
                              "\"ScheduleAttemptFailure\",queue=\"backoff\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("scheduler_cache_size{type=\"assumed_pods\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_suspended_workloads 2\n"));
}

// Before the owner's thread has answered, the other statistics are shown.
TEST(MetricsTest, AHungOwnerDoesNotSilenceTheRest) {
  AppStats app = FullApp();
  app.owner_silent_for = absl::Seconds(40);
  const std::string text = Text(app, OwnerStats{});
  EXPECT_THAT(text, HasSubstr("fairlead_owner_silent_seconds 40\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_kind_stale{kind=\"Pod\"} 0\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\nfairlead_cycles_total ")));
}

TEST(MetricsTest, WebhooksThatAreServedAreCounted) {
  EXPECT_THAT(Text(FullApp(), FullOwner()),
              HasSubstr("fairlead_admission_requests_total{answer=\"admitted\"} 7\n"));
  EXPECT_THAT(Text(FullApp(), FullOwner()),
              HasSubstr("fairlead_admission_requests_total{answer=\"invalid\"} 2\n"));
}

TEST(MetricsTest, SpansAreCountedByWhatBecameOfThem) {
  const std::string text = Text(FullApp(), FullOwner());
  EXPECT_THAT(text, HasSubstr("fairlead_trace_spans_total{result=\"sent\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_trace_spans_total{result=\"failed\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_trace_spans_total{result=\"dropped\"} 2\n"));
}

// Dashboards of KAI's read them; without kaiStatus its own controllers tell them.
TEST(MetricsTest, QueuesAsKaiTellsThem) {
  OwnerStats owner = FullOwner();
  const std::string text = Text(FullApp(), owner);
  for (const char* sample :
       {"kai_queue_info{queue_name=\"team \\\"a\\\"\"} 1\n",
        "kai_queue_deserved_gpus{queue_name=\"team \\\"a\\\"\"} 2.5\n",
        "kai_queue_allocated_cpu_cores{queue_name=\"team \\\"a\\\"\"} 3.5\n",
        "kai_queue_quota_memory_bytes{queue_name=\"team \\\"a\\\"\"} -1\n",
        "kai_queue_fair_share_memory_gb{queue_name=\"team \\\"a\\\"\"} 4.5\n"}) {
    EXPECT_THAT(text, HasSubstr(sample));
  }
  owner.kai_status = false;
  EXPECT_THAT(Text(FullApp(), owner), Not(HasSubstr("\nkai_")));
}

TEST(MetricsTest, SamplesOfSeveralShardsNameThem) {
  HostStats host;
  host.version = "1.2.3";
  const std::string text =
      server::Expose(MetricsOf({{"", FullApp(), FullOwner()}, {"gpu-a", FullApp(), FullOwner()}},
                               host, absl::FromUnixSeconds(102)));
  EXPECT_THAT(text, HasSubstr("\nfairlead_event_queue_length{shard=\"\"} "));
  EXPECT_THAT(text, HasSubstr("\nfairlead_event_queue_length{shard=\"gpu-a\"} "));
  EXPECT_THAT(text, HasSubstr("\nfairlead_build_info{version=\"1.2.3\"} 1\n"));
}

// Users build dashboards by docs/metrics.md.
TEST(MetricsTest, ThePageSaysWhatTheProgramSays) {
  HostStats host;
  host.webhook = WebhookStats();
  host.spans = SpanStats();
  std::vector<std::string> rows;
  const std::vector<server::Metric> metrics =
      MetricsOf({{std::nullopt, FullApp(), FullOwner()}}, host, absl::FromUnixSeconds(102));
  ASSERT_EQ(metrics.size(), AllMetrics().size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    const MetricInfo& info = AllMetrics()[i];
    ASSERT_FALSE(metrics[i].samples.empty()) << info.name << " never has a value";
    std::vector<std::string> labels;
    for (const auto& [name, value] : metrics[i].samples[0].labels) labels.push_back(name);
    EXPECT_EQ(absl::StrJoin(labels, ", "), info.labels) << info.name;
    if (info.type == server::MetricType::kCounter) {
      EXPECT_TRUE(absl::EndsWith(info.name, "_total")) << info.name;
    }
    rows.push_back(absl::StrCat("| `", info.name, "` | ", server::MetricTypeName(info.type), " | ",
                                info.labels, " | ", info.help, " |"));
  }
  std::ifstream page("docs/metrics.md");
  ASSERT_TRUE(page) << "run from the root of the repository";
  std::vector<std::string> found;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| `")) found.push_back(line);
  }
  EXPECT_EQ(found, rows) << "the table should be:\n" << absl::StrJoin(rows, "\n");
}

TEST(ProcessFactsTest, TheKernelKnowsUs) {
  const ProcessFacts facts = ProcessFacts::Read();
  EXPECT_GT(facts.resident_bytes, 1 << 20);
  EXPECT_GE(facts.virtual_bytes, facts.resident_bytes);
  EXPECT_GE(facts.open_fds, 3);
  EXPECT_GE(facts.max_fds, facts.open_fds);
  const double now = static_cast<double>(absl::ToUnixSeconds(absl::Now()));
  EXPECT_GT(facts.start_time_seconds, now - 86400);
  EXPECT_LT(facts.start_time_seconds, now + 60);
}

}  // namespace
}  // namespace fairlead::cmd
