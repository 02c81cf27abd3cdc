// What tests of claims and devices share. Header only; never part of the product.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace fairlead::state::testing {

// A seeded generator whose seed a failing test prints; FAIRLEAD_TEST_SEED repeats one.
class Random {
 public:
  Random() : seed_(Seed()), engine_(seed_) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  [[nodiscard]] std::string Describe() const { return absl::StrCat("FAIRLEAD_TEST_SEED=", seed_); }

 private:
  static uint64_t Seed() {
    const char* given = std::getenv("FAIRLEAD_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
  }
  uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace fairlead::state::testing
