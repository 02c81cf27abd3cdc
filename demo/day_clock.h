// The scenario's time of day and the machine's: one runs `speed` times as fast as the other.
// Thread-safety: plain values and pure functions.
#pragma once

#include "absl/time/time.h"
#include "core/options.h"
#include "core/view.h"

namespace fairlead::demo {

struct DayClock {
  absl::Time real_start, scenario_start;
  double speed = 1;

  [[nodiscard]] absl::Time ToScenario(absl::Time real) const {
    return scenario_start + (real - real_start) * speed;
  }
  [[nodiscard]] absl::Time ToReal(absl::Time scenario) const {
    return real_start + (scenario - scenario_start) / speed;
  }
  [[nodiscard]] absl::Duration ToReal(absl::Duration scenario) const { return scenario / speed; }

  // A view of the real time told in the scenario's: every instant in it, messages included.
  [[nodiscard]] core::View ToScenario(core::View view) const;
};

// The hook's settings for a clock that runs so fast. Time-outs keep a floor in real time: the API
// server is not faster than it is.
hook::HookOptions Accelerated(hook::HookOptions options, double speed);

}  // namespace fairlead::demo
