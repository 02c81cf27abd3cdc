// Random numbers for property tests, equal on every machine. Header only; never part of the
// product.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/environment.h"

namespace fairlead::testing {

// A seeded generator whose seed a failing test prints; FAIRLEAD_TEST_SEED repeats one.
class Random {
 public:
  explicit Random(uint64_t otherwise = 20260101)
      : seed_(FromEnvironment("FAIRLEAD_TEST_SEED", otherwise)), engine_(seed_) {}
  // `low`..`high`, both included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  [[nodiscard]] std::string Describe() const { return absl::StrCat("FAIRLEAD_TEST_SEED=", seed_); }
  std::mt19937_64& engine() { return engine_; }

 private:
  uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace fairlead::testing
