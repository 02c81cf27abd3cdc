// Runs plans in child processes: a program that aborts, or never comes back, is a failure of the
// plan that it ran and not the end of the run.
//
// Thread-safety: none; call it from a process that has one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cmd/simtest/simulation.h"
#include "sim/world/plan.h"

namespace fairlead::simtest {

// A child that takes more than 2 GiB fails too. Of a sanitizer's address space that says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitsMemory = false;
#else
inline constexpr bool kLimitsMemory = true;
#endif

// What a child told. A child that died, or used more than `limit` of CPU time for one world, failed
// the invariant "process" or "hang".
struct Report {
  uint64_t seed = 0;
  RunResult result;
};

// One plan in one child.
RunResult RunInChild(const sim::world::Plan& plan, const RunOptions& options, absl::Duration limit);

// Seeds `first`..`last`, `jobs` at a time. `make` makes the plan of a seed; `report` is called as
// they end, in any order, and says whether to go on.
void RunSeeds(uint64_t first, uint64_t last, int jobs, const RunOptions& options,
              absl::Duration limit, const std::function<sim::world::Plan(uint64_t)>& make,
              const std::function<bool(const Report&)>& report);

}  // namespace fairlead::simtest
