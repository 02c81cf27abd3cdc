// The queries to Prometheus: PromQL for what each queue held and for the cluster's capacity, summed
// over the usage window, as in KAI's client (v0.17, pkg/scheduler/cache/usagedb/prometheus):
//
//   sum_over_time((max by (queue_name) (METRIC) * 0.5^((NOW - time()) / HALF_LIFE))[WINDOW:STEP])
//   sum_over_time(((CAPACITY) * 0.5^((NOW - time()) / HALF_LIFE))[WINDOW:STEP])
//
// They are instant queries (GET /api/v1/query) for one time NOW, so an answer has one number per
// queue. Without a half-life the factor is omitted. Two things differ from KAI. The series of one
// queue are reduced to their maximum at each step: a restarted queue controller leaves two, of
// which KAI takes one. And tumbling and cron windows use the same queries; KAI uses a range query
// of an expression that Prometheus rejects.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "queues/usage_window.h"

namespace fairlead::prometheus {

inline constexpr char kQueueLabel[] = "queue_name";

// PromQL expressions in the same unit; only their ratio counts.
struct Metric {
  std::string name;        // for messages: "gpu"
  std::string resource;    // "nvidia.com/gpu"
  std::string allocation;  // series with a label queue_name
  std::string capacity;    // one series
};
// KAI's defaults for gpu, cpu and memory: its queue controller's gauges and kube-state-metrics.
std::vector<Metric> DefaultMetrics();

struct QueryOptions {
  queues::UsageOptions usage;
  std::vector<Metric> metrics = DefaultMetrics();
  absl::Duration resolution = absl::Minutes(1);  // STEP; whole seconds
  absl::Duration timeout = absl::Seconds(10);    // of a query, for client and server
};

struct Question {
  size_t metric = 0;  // index into QueryOptions::metrics
  bool capacity = false;
  std::string path;  // of the request, relative to the address of the server
};

class Queries {
 public:
  // InvalidArgument for the errors of UsageWindow::Create and for steps and time-outs that are not
  // positive.
  static absl::StatusOr<Queries> Create(QueryOptions options);

  // Two questions per metric, allocation first. `now` counts in whole seconds.
  [[nodiscard]] std::vector<Question> At(absl::Time now) const;
  [[nodiscard]] const QueryOptions& options() const { return options_; }

 private:
  Queries(QueryOptions options, queues::UsageWindow window)
      : options_(std::move(options)), window_(std::move(window)) {}
  [[nodiscard]] std::string PathOf(const Metric& metric, bool capacity, int64_t now_s) const;

  QueryOptions options_;
  queues::UsageWindow window_;
};

}  // namespace fairlead::prometheus
