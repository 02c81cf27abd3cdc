// Jittered delays between attempts (of base/write_attempts.h), without randomness. The jitter is a
// hash of a seed and a counter: clients with different seeds drift apart (no thundering herd after
// a restart of the server), and one seed always gives the same delays.
//
// Thread-safety: none; each user owns one. Complexity: O(1).
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "base/write_attempts.h"

namespace fairlead::kube {

// A well-mixed 64-bit value of (seed, n). The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t JitterBits(uint64_t seed, uint64_t n);

// Evenly distributed within [low, high), by (seed, n). `low` if the interval is empty.
absl::Duration JitteredBetween(absl::Duration low, absl::Duration high, uint64_t seed, uint64_t n);

class JitteredBackoff {
 public:
  JitteredBackoff(Backoff pauses, uint64_t seed) : pauses_(pauses), seed_(seed) {}

  // The next delay, within [d/2, d) where d is the pause after as many failures as calls.
  absl::Duration Next();
  // After a success: the next delay has the initial size. The jitter's counter is kept.
  void Reset() { failures_ = 0; }

 private:
  Backoff pauses_;
  uint64_t seed_;
  uint64_t count_ = 0;
  int64_t failures_ = 0;
};

}  // namespace fairlead::kube
