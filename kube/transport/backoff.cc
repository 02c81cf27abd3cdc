#include "kube/transport/backoff.h"

namespace fairlead::kube {

uint64_t JitterBits(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

absl::Duration JitteredBetween(absl::Duration low, absl::Duration high, uint64_t seed, uint64_t n) {
  const int64_t span_ns = absl::ToInt64Nanoseconds(high - low);
  if (span_ns <= 0) return low;
  return low + absl::Nanoseconds(
                   static_cast<int64_t>(JitterBits(seed, n) % static_cast<uint64_t>(span_ns)));
}

absl::Duration JitteredBackoff::Next() {
  const absl::Duration pause = pauses_.Pause(++failures_);
  return JitteredBetween(pause / 2, pause, seed_, count_++);
}

}  // namespace fairlead::kube
