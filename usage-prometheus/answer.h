// The answers of Prometheus (its HTTP API, /api/v1/query: an instant vector), and the usage
// computed from them.
//
// An answer is accepted whole or not at all: a queue without a number would seem to have used
// nothing, at the cost of other queues. So one bad sample invalidates the answer: not a finite
// number, negative, without a queue, or the second of its queue.
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
  std::vector<std::string> warnings;  // from Prometheus, which answers nevertheless
};

// InvalidArgument for an invalid answer, Unavailable for one that is not 200, with Prometheus' own
// message if there is one. Redirects are not followed.
absl::StatusOr<Answer> ReadAnswer(const kube::HttpResponse& response);

// Both answers for one metric.
struct MetricAnswers {
  Answer allocation, capacity;
};
struct Usage {
  model::UsageReport report;
  std::vector<std::string> warnings;
};
// One entry of `answers` per metric. InvalidArgument names the metric (by its field in the
// configuration) and the queue. Omits a resource that the cluster lacks and no queue held.
absl::StatusOr<Usage> Combine(absl::Time at, absl::Span<const Metric> metrics,
                              absl::Span<const MetricAnswers> answers);

// "gpuAllocationMetric", "cpuCapacityMetric": the field in which the expression is configured.
std::string FieldOf(const Metric& metric, bool capacity);

}  // namespace fairlead::prometheus
