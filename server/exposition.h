// Metrics as plain values, and in the text format that Prometheus scrapes (version 0.0.4).
// Thread-safety: pure functions. Complexity: O(samples).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::server {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };
const char* MetricTypeName(MetricType type);  // "counter"

struct Sample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // of a counter or gauge
  // Of a histogram: {upper bound, count of samples up to it}, ascending, the last bound infinite.
  std::vector<std::pair<double, uint64_t>> buckets;
  double sum = 0;
};

struct Metric {
  std::string name, help;
  MetricType type = MetricType::kGauge;
  std::vector<Sample> samples;
};

inline constexpr char kExpositionType[] = "text/plain; version=0.0.4; charset=utf-8";
std::string Expose(const std::vector<Metric>& metrics);

}  // namespace fairlead::server
