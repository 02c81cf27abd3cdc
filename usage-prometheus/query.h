// What Prometheus is asked: PromQL for what each queue held and for what the cluster had, summed
// over the usage window, as KAI's client asks it (v0.17, pkg/scheduler/cache/usagedb/prometheus):
//
//   sum_over_time((max by (queue_name) (METRIC) * 0.5^((NOW - time()) / HALF_LIFE))[WINDOW:STEP])
//   sum_over_time(((CAPACITY) * 0.5^((NOW - time()) / HALF_LIFE))[WINDOW:STEP])
//
// as instant queries (GET /api/v1/query) for one time NOW, so that an answer is one number a queue.
// Without a half-life the factor is left out. Beyond KAI: the series of one queue are folded by
// their greatest at each step (a queue controller that was restarted leaves two, of which KAI takes
// one), and tumbling and cron windows are asked for in the same way (KAI asks for them by a range
// query of an expression that Prometheus refuses).
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
// KAI's, for gpu, cpu and memory: its queue controller's gauges and kube-state-metrics.
std::vector<Metric> DefaultMetrics();

struct QueryOptions {
  queues::UsageOptions usage;
  std::vector<Metric> metrics = DefaultMetrics();
  absl::Duration resolution = absl::Minutes(1);  // STEP; whole seconds
  absl::Duration timeout = absl::Seconds(10);    // of a query, there and here
};

struct Question {
  size_t metric = 0;  // index into QueryOptions::metrics
  bool capacity = false;
  std::string path;  // of the request, under the address of the server
};

class Queries {
 public:
  // InvalidArgument, for what UsageWindow::Create says and for steps and time-outs without length.
  static absl::StatusOr<Queries> Create(QueryOptions options);

  // Two for each metric, allocation first. `now` counts in whole seconds.
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
