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

  // The real view with every time in it, messages included, converted to the scenario's time.
  [[nodiscard]] core::View ToScenario(core::View view) const;
};

// The hook's settings for an accelerated clock. Time-outs have a floor in real time, because the
// API server does not become faster.
hook::HookOptions Accelerated(hook::HookOptions options, double speed);

}  // namespace fairlead::demo
