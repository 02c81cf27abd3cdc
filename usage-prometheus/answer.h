// What Prometheus answers (its HTTP API, /api/v1/query: an instant vector), and what it comes to.
//
// An answer is believed whole or not at all: a queue whose number is missing would look as if it
// had used nothing, and others would pay for it. So one sample that is no finite number, negative,
// without a queue, or the second of its queue makes all of it worthless.
//
// Thread-safety: pure functions. Complexity: O(bytes of the answers).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kube/transport/http.h"
#include "scheduler/model/usage_report.h"
#include "usage-prometheus/decimal.h"
#include "usage-prometheus/query.h"

namespace fairlead::prometheus {

struct Sample {
  std::string queue;  // its label queue_name; empty without
  Decimal value;
  friend bool operator==(const Sample&, const Sample&) = default;
};

struct Answer {
  std::vector<Sample> samples;
  std::vector<std::string> warnings;  // of Prometheus, which answers all the same
};

// InvalidArgument for what is no such answer, Unavailable for one that is not 200, with Prometheus'
// own words if it has some. A redirect is not followed.
absl::StatusOr<Answer> ReadAnswer(const kube::HttpResponse& response);

// Both answers for one metric.
struct MetricAnswers {
  Answer allocation, capacity;
};
struct Usage {
  model::UsageReport report;
  std::vector<std::string> warnings;
};
// One entry of `answers` for each metric. InvalidArgument names the metric (by its field in the
// configuration) and the queue. A resource that the cluster has not and nobody held is left out.
absl::StatusOr<Usage> Combine(absl::Time at, absl::Span<const Metric> metrics,
                              absl::Span<const MetricAnswers> answers);

// "gpuAllocationMetric", "cpuCapacityMetric": where the expression can be configured.
std::string FieldOf(const Metric& metric, bool capacity);

}  // namespace fairlead::prometheus
