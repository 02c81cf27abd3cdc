// The metrics for Prometheus: one table of all metrics (a test compares docs/metrics.md with it),
// and their values from the statistics.
//
// Names: `scheduler_*` as in kube-scheduler if they mean the same, `process_*` as in every
// Prometheus client, else `fairlead_*`.
//
// Thread-safety: pure functions, except ProcessFacts::Read, which reads /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cmd/fairlead/app/app_stats.h"
#include "cmd/fairlead/traces/span_stats.h"
#include "cmd/fairlead/webhook/webhook_stats.h"
#include "server/exposition.h"

namespace fairlead::cmd {

struct MetricInfo {
  const char* name;
  server::MetricType type;
  const char* labels;  // names, separated by ", "
  const char* help;
};
const std::vector<MetricInfo>& AllMetrics();

// The kernel's counts of the process; zero if unknown.
struct ProcessFacts {
  double cpu_seconds = 0, start_time_seconds = 0;
  int64_t resident_bytes = 0, virtual_bytes = 0, open_fds = 0, max_fds = 0;
  static ProcessFacts Read();
};

// Statistics from outside the Application.
struct HostStats {
  ProcessFacts process;
  int64_t log_lines_dropped = 0, audit_lines_dropped = 0;
  int64_t reloads_ok = 0, reloads_failed = 0;
  // True if the last reload failed and an older configuration is in force.
  bool configuration_stale = false;
  std::string version;
  std::optional<WebhookStats> webhook;  // none: no webhooks are served
  std::optional<SpanStats> spans;       // none: no traces are sent
};

// Statistics of one Application.
struct ShardStats {
  std::optional<std::string> shard;  // value of label "shard"; absent: the process has no others
  AppStats app;
  OwnerStats owner;
};

// Every metric of AllMetrics, in that order; one without samples if its value is not known.
std::vector<server::Metric> MetricsOf(const std::vector<ShardStats>& shards, const HostStats& host,
                                      absl::Time now);

}  // namespace fairlead::cmd
