// The numbers of Go's math/rand for a seed. Published experiments ordered their pods with them, and
// a fair comparison needs that order.
//
// The generator is an additive lagged Fibonacci one, x[n] = x[n-607] + x[n-273] mod 2^64. It is
// started from the seed through the Lehmer generator 48271 x mod 2^31-1, and mixed with the state
// that the same recurrence has after 7.8e12 steps from a fixed start. That state is not stored but
// computed, by raising x to that power modulo the characteristic polynomial (once, about 50 ms).
//
// Thread-safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::replay {

class GoRandom {
 public:
  explicit GoRandom(int64_t seed);

  // As rand.Rand's methods of these names.
  uint64_t Uint64();
  int64_t Int63() { return static_cast<int64_t>(Uint64() & ~(uint64_t{1} << 63)); }
  int32_t Intn(int32_t n);  // n > 0
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) {
      std::swap(items[i], items[Below(static_cast<uint32_t>(i + 1))]);
    }
  }

 private:
  static constexpr size_t kLength = 607;
  static constexpr size_t kTap = 273;
  using State = std::array<uint64_t, kLength>;
  static State Warmed();
  static State Start(int64_t seed, int high_shift, int middle_shift);
  uint32_t Below(uint32_t n);  // int31n: what Shuffle draws with

  State state_;
  size_t tap_ = 0;
  size_t feed_ = kLength - kTap;
};

}  // namespace fairlead::replay
