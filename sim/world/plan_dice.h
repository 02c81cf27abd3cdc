// A plan that is being drawn, and the dice: each part of the program that draws operations has dice
// of its own, so that what one part draws does not change what the others do.
//
// Determinism: one source of chance, drawn from in the order of the calls. Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "sim/faults.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

inline constexpr int64_t kGiB = int64_t{1} << 30;
inline constexpr int64_t kSecond = 1000;
inline constexpr int64_t kForever = 600;  // seconds: beyond the end of the world

class PlanDice {
 protected:
  // `plan` outlives it, and is not touched before the first draw.
  PlanDice(uint64_t dice_seed, Plan& plan) : random_(dice_seed), plan_(plan) {}

  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[random_.Below(of.size())];
  }
  // Some time of the plan, not in its first seconds.
  int64_t Sometime() { return random_.Between(5 * kSecond, plan_.end_ms - kSecond); }
  Operation& At(int64_t at_ms, absl::string_view verb) {
    Operation& operation = plan_.operations.emplace_back();
    operation.at_ms = at_ms;
    operation.verb = std::string(verb);
    return operation;
  }
  // How often something happens: `low` to `high` times.
  void Times(int64_t low, int64_t high, const std::function<void()>& what) {
    for (int64_t n = random_.Between(low, high); n > 0; --n) what();
  }

  Random random_;
  Plan& plan_;
};

}  // namespace fairlead::sim::world
