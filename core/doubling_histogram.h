// Counts of observations by bounds that double: 1, 2, 4 ... times a first one, as the histograms of
// kube-scheduler's metrics have them. Thread-safety: plain values. Complexity: O(buckets).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fairlead::core {

// `kFirst`: the first bound, in the unit of the observations. Bucket i has what is above the bound
// before it and at most kFirst * 2^i; the last bucket, after kBounds bounded ones, has the rest.
template <int64_t kFirst, size_t kBounds>
struct DoublingHistogram {
  static constexpr size_t kBuckets = kBounds + 1;
  std::array<int64_t, kBuckets> counts{};
  int64_t sum = 0;

  static constexpr int64_t BoundOf(size_t bucket) { return kFirst << bucket; }
  void Add(int64_t value) {
    size_t bucket = 0;
    while (bucket < kBounds && value > BoundOf(bucket)) ++bucket;
    ++counts[bucket];
    sum += value;
  }
};

}  // namespace fairlead::core
