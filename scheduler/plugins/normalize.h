// Upstream's DefaultNormalizeScore (pkg/scheduler/framework/plugins/helper/normalize_score.go).
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

// Makes the most of the kinds that there are to choose from kMaxNodeScore, the others in
// proportion, rounded down; all 0 stay 0. `reverse`: the most becomes 0, and 0 becomes
// kMaxNodeScore. No score is below 0.
inline void NormalizeByMost(absl::Span<const framework::Kind> kinds, absl::Span<int64_t> scores,
                            bool reverse = false) {
  int64_t most = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].nodes > 0) most = std::max(most, scores[i]);
  }
  for (int64_t& score : scores) {
    const int64_t share = most == 0 ? 0 : framework::kMaxNodeScore * score / most;
    score = reverse ? framework::kMaxNodeScore - share : share;
  }
}

}  // namespace fairlead::plugins
