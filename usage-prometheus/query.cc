#include "usage-prometheus/query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "kube/transport/url.h"
#include "scheduler/model/resources.h"

namespace fairlead::prometheus {
namespace {

constexpr char kInstantQuery[] = "/api/v1/query";
constexpr char kCapacityOf[] = "sum(kube_node_status_capacity{resource=\"";

// "86400" or "0.5", in PromQL's syntax.
std::string SecondsText(absl::Duration duration) {
  const int64_t ms = absl::ToInt64Milliseconds(duration);
  return ms % 1000 == 0 ? absl::StrCat(ms / 1000)
                        : absl::StrFormat("%d.%03d", ms / 1000, ms % 1000);
}

}  // namespace

std::vector<Metric> DefaultMetrics() {
  return {{"gpu", model::kGpuName, "kai_queue_allocated_gpus",
           absl::StrCat(kCapacityOf, "nvidia_com_gpu\"})")},
          {"cpu", model::kCpuName, "kai_queue_allocated_cpu_cores",
           absl::StrCat(kCapacityOf, "cpu\"})")},
          {"memory", model::kMemoryName, "kai_queue_allocated_memory_bytes",
           absl::StrCat(kCapacityOf, "memory\"})")}};
}

absl::StatusOr<Queries> Queries::Create(QueryOptions options) {
  FAIRLEAD_ASSIGN_OR_RETURN(queues::UsageWindow window, queues::UsageWindow::Create(options.usage));
  if (options.resolution < absl::Seconds(1) ||
      options.resolution % absl::Seconds(1) != absl::ZeroDuration()) {
    return absl::InvalidArgumentError("usage: queryResolution is not whole seconds, at least one");
  }
  if (options.timeout < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError("usage: usageQueryTimeout is not more than zero");
  }
  return Queries(std::move(options), std::move(window));
}

std::vector<Question> Queries::At(absl::Time now) const {
  const int64_t now_s = absl::ToUnixSeconds(now);
  std::vector<Question> questions;
  for (size_t i = 0; i < options_.metrics.size(); ++i) {
    for (const bool capacity : {false, true}) {
      questions.push_back({i, capacity, PathOf(options_.metrics[i], capacity, now_s)});
    }
  }
  return questions;
}

std::string Queries::PathOf(const Metric& metric, bool capacity, int64_t now_s) const {
  std::string held = capacity
                         ? absl::StrCat("(", metric.capacity, ")")
                         : absl::StrCat("max by (", kQueueLabel, ") (", metric.allocation, ")");
  if (options_.usage.half_life > absl::ZeroDuration()) {
    absl::StrAppend(&held, " * 0.5^((", now_s, " - time()) / ",
                    SecondsText(options_.usage.half_life), ")");
  }
  // A window that has just begun has no step yet, so it gets one.
  const int64_t step_s = absl::ToInt64Seconds(options_.resolution);
  const int64_t length_ms = now_s * 1000 - window_.Start(now_s * 1000);
  const int64_t length_s = std::max(step_s, (length_ms + 999) / 1000);
  std::string path = kInstantQuery;
  kube::AddQuery(path, "query",
                 absl::StrCat("sum_over_time((", held, ")[", length_s, "s:", step_s, "s])"));
  kube::AddQuery(path, "time", absl::StrCat(now_s));
  kube::AddQuery(path, "timeout", absl::StrCat(absl::ToInt64Milliseconds(options_.timeout), "ms"));
  return path;
}

}  // namespace fairlead::prometheus
