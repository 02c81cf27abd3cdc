// Growing, jittered delays between attempts, without randomness. The jitter is a hash of a seed and
// a counter: clients with different seeds drift apart (no thundering herd after a restart of the
// server), and one seed always gives the same delays.
//
// Thread-safety: none; each user owns one. Complexity: O(1).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace fairlead::kube {

// A well-mixed 64-bit value of (seed, n). The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t JitterBits(uint64_t seed, uint64_t n);

// Evenly distributed within [low, high), by (seed, n). `low` if the interval is empty.
absl::Duration JitteredBetween(absl::Duration low, absl::Duration high, uint64_t seed, uint64_t n);

class Backoff {
 public:
  Backoff(absl::Duration initial, absl::Duration max, uint64_t seed)
      : initial_(initial), max_(max), current_(initial), seed_(seed) {}

  // The next delay, within [d/2, d) where d doubles from `initial` up to `max`.
  absl::Duration Next();
  // After a success: the next delay has the initial size. The jitter's counter is kept.
  void Reset() { current_ = initial_; }

 private:
  absl::Duration initial_, max_, current_;
  uint64_t seed_;
  uint64_t count_ = 0;
};

}  // namespace fairlead::kube
