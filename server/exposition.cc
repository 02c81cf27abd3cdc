#include "server/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace fairlead::server {
namespace {

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

const char* MetricTypeName(MetricType type) {
  static constexpr const char* kNames[] = {"counter", "gauge", "histogram"};
  return kNames[static_cast<size_t>(type)];
}

std::string Expose(const std::vector<Metric>& metrics) {
  std::vector<prometheus::MetricFamily> families;
  families.reserve(metrics.size());
  for (const Metric& metric : metrics) {
    prometheus::MetricFamily family;
    family.name = metric.name;
    family.help = metric.help;
    family.type = TypeOf(metric.type);
    for (const Sample& sample : metric.samples) {
      prometheus::ClientMetric out;
      for (const auto& [name, value] : sample.labels) out.label.push_back({name, value});
      out.counter.value = sample.value;
      out.gauge.value = sample.value;
      for (const auto& [bound, count] : sample.buckets) {
        out.histogram.bucket.push_back({count, bound});
      }
      out.histogram.sample_count = sample.buckets.empty() ? 0 : sample.buckets.back().second;
      out.histogram.sample_sum = sample.sum;
      family.metric.push_back(std::move(out));
    }
    families.push_back(std::move(family));
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace fairlead::server
