// The ranges of all scores in one place. Tiers: the least step of a tier outweighs all that the
// tiers below it can give, so scores compose lexicographically; inside the upper tier the plugins
// trade off by upstream's weights.
//   preference   TaintToleration, NodeAffinity, PodTopologySpread, InterPodAffinity:
//                0..100 times kPreferenceStep
//   kind of node ResourceType: 0 or kResourceTypeStep
//   tightness    NodePlacement: 0..kPlacementRange
// With the default weights; a weight above 1 on a lower plugin lifts it by that factor.
#pragma once

#include <cstdint>

namespace fairlead::plugins {

inline constexpr int64_t kPlacementRange = 1'000'000'000;
inline constexpr int64_t kResourceTypeStep = 2'000'000'000;
inline constexpr int64_t kPreferenceStep = 4'000'000'000;
static_assert(kResourceTypeStep > kPlacementRange);
static_assert(kPreferenceStep > kResourceTypeStep + kPlacementRange);

}  // namespace fairlead::plugins
