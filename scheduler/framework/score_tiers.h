// The ranges of all scores in one place. Tiers: the least step of a tier outweighs all that the
// tiers below it can give, so scores compose lexicographically, in the order of KAI's magnitudes:
//   nominated    the node that the pod was promised before: 0 or kNominatedStep
//   preference   upstream's plugins, each 0..100 (kMaxNodeScore) times kPreferenceStep; inside the
//                tier they trade off by upstream's weights, and nothing else is in the sum that
//                upstream makes
//   topology     the preferred level of a gang: 0..10 times kTopologyStep (the engine's placer)
//   shared GPU   GpuSharing, a share that joins a GPU that is shared already: 0 or kSharedGpuStep
//   fits now     idle capacity before capacity that is being released: 0 or kFitsNowStep (the
//                engine's placer)
//   NUMA nodes   Numa, which is off by default: 0..3 times kNumaStep
//   kind of node ResourceType: 0 or kResourceTypeStep
//   tightness    NodePlacement: 0..kPlacementRange
// With the default weights; a weight above 1 on a lower plugin lifts it by that factor.
#pragma once

#include <cstdint>

namespace fairlead::framework {

inline constexpr int64_t kMaxNodeScore = 100;
inline constexpr int64_t kPlacementRange = 1'000'000'000;
inline constexpr int64_t kResourceTypeStep = 2 * kPlacementRange;
inline constexpr int64_t kNumaStep = 2 * kResourceTypeStep;
inline constexpr int64_t kFitsNowStep = 4 * kNumaStep;
inline constexpr int64_t kSharedGpuStep = 2 * kFitsNowStep;
inline constexpr int64_t kTopologyStep = 2 * kSharedGpuStep;
inline constexpr int64_t kPreferenceStep = 12 * kTopologyStep;
inline constexpr int64_t kNominatedStep = 4096 * kPreferenceStep;
static_assert(kResourceTypeStep > kPlacementRange);
static_assert(kNumaStep > kResourceTypeStep + kPlacementRange);
static_assert(kFitsNowStep > 3 * kNumaStep + kResourceTypeStep + kPlacementRange);
static_assert(kPreferenceStep > 10 * kTopologyStep + kSharedGpuStep + kFitsNowStep + 3 * kNumaStep +
                                    kResourceTypeStep + kPlacementRange);

}  // namespace fairlead::framework
