// How long plugins take, for metrics alone: nothing decides by it. As kube-scheduler's
// scheduler_plugin_execution_duration_seconds has it: by plugin, extension point and status.
//
// Thread-safety: plain values. Complexity: O(buckets), and O(log) of what is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::core {

// Bucket i has what is above the bound before it and at most 10 us * 1.5^i; the last one the rest.
struct PluginHistogram {
  static constexpr size_t kBounds = 20;
  std::array<int64_t, kBounds + 1> counts{};
  absl::Duration sum = absl::ZeroDuration();

  static double BoundSeconds(size_t bucket) {
    double bound = 0.00001;
    for (size_t i = 0; i < bucket; ++i) bound *= 1.5;
    return bound;
  }
  void Add(absl::Duration took) {
    const double seconds = absl::ToDoubleSeconds(took);
    double bound = 0.00001;
    size_t bucket = 0;
    for (; bucket < kBounds && seconds > bound; ++bucket) bound *= 1.5;
    ++counts[bucket];
    sum += took;
  }
};

class PluginDurations {
 public:
  struct Key {
    std::string plugin, point, status;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.plugin, a.point, a.status) < std::tie(b.plugin, b.point, b.status);
    }
  };
  // `status`: kube-scheduler's words: "Success", "Unschedulable", "Error".
  void Add(absl::string_view plugin, absl::string_view point, absl::string_view status,
           absl::Duration took) {
    rows_[{std::string(plugin), std::string(point), std::string(status)}].Add(took);
  }
  [[nodiscard]] const std::map<Key, PluginHistogram>& rows() const { return rows_; }

 private:
  std::map<Key, PluginHistogram> rows_;
};

}  // namespace fairlead::core
