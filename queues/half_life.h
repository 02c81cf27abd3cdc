// Exponential decay in integers: the weight of an amount by its age. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "queues/exact.h"

namespace fairlead::queues {

// The weight one, in the unit of DecayWeight.
inline constexpr uint64_t kFullWeight = uint64_t{1} << 32;

// kFullWeight * 0.5^(age / half life), correct to about one part in 2^30; never grows with age.
// Full weight for an age below zero and for a half life of zero or less (no decay).
uint64_t DecayWeight(int64_t age_ms, int64_t half_life_ms);

// amount * weight / kFullWeight, rounded down. Needs weight <= kFullWeight.
Uint128 Weighted(Uint128 amount, uint64_t weight);

}  // namespace fairlead::queues
