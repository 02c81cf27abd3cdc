// The random choices of a generated cluster: the same ones for a seed, on every machine.
//
// Thread-safety: one object per thread.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fairlead::differential {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  // Both bounds are included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  std::string Pick(const std::vector<std::string>& values) {
    return values[static_cast<size_t>(Between(0, static_cast<int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace fairlead::differential
