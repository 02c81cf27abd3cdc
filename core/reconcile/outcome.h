// The one rule for answers to writes, and the one back-off between attempts.
//
//   OK                               done; the watch shows its effect
//   Unavailable, DeadlineExceeded    unknown: the write may have been done or may still be done
//   anything else                    refused: nothing was done
//
// After one unknown outcome a refusal of a repetition proves nothing: the first attempt may be its
// reason. Such a write stays unknown until the watch, or an OK, decides.
//
// Thread-safety: pure functions, plain values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fairlead::core {

enum class Outcome : uint8_t { kDone, kUnknown, kRefused };

// `in_doubt`: the outcome of an earlier attempt at the same write is unknown.
inline Outcome OutcomeOf(const absl::Status& status, bool in_doubt) {
  if (status.ok()) return Outcome::kDone;
  if (in_doubt || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return Outcome::kUnknown;
  }
  return Outcome::kRefused;
}

// Pauses that double from `initial` to `max`.
struct Backoff {
  absl::Duration initial, max;
  // After the `attempts`th failure in a row, from 1.
  [[nodiscard]] absl::Duration Pause(int attempts) const {
    absl::Duration pause = initial;
    for (int i = 1; i < attempts && pause < max; ++i) pause *= 2;
    return std::min(pause, max);
  }
};

}  // namespace fairlead::core
