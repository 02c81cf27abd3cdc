// A recorded week, played in the simulator as it was and with a change: `fairlead what-if
// --journal`. What can be said by it, and what not, is in docs/commands.md.
//
// Thread-safety: pure functions. Determinism: same input, same answer. Complexity: that of the
// decisions, twice, and one view per decision.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/forecast/change.h"
#include "cmd/fairlead/forecast/recorded_week.h"
#include "core/options.h"
#include "document/json.h"

namespace fairlead::cmd {

// Of one queue, or of all.
struct WeekTotals {
  int64_t jobs = 0, started = 0;
  absl::Duration wait;                // summed; of jobs that never started until the end
  std::vector<absl::Duration> waits;  // ascending
  int64_t gpu_milli_seconds = 0;      // that jobs held
  int64_t cost_micro_usd = 0;         // of provisioned nodes, shared among the pods on them

  [[nodiscard]] absl::Duration MeanWait() const;
  // The wait that 9 of 10 jobs do not exceed.
  [[nodiscard]] absl::Duration LongWait() const;
};

struct WeekSide {
  std::map<std::string, WeekTotals> queues;  // by name
  std::map<std::string, int64_t> verdicts;   // by code: how often a pod began to wait with it
  std::map<std::string, int64_t> nodes;      // requested, by instance type
  int64_t evictions = 0, cost_micro_usd = 0, idle_micro_usd = 0;
};

struct WeekAnswer {
  absl::Time from, to;
  std::vector<std::string> changes;
  std::map<std::string, WeekTotals> recorded;  // by queue: jobs, started, wait and waits alone
  WeekSide without, with;
  int64_t jobs = 0, jobs_without_claims = 0, jobs_still_running = 0;
};

struct WeekQuestion {
  const RecordedWeek* week = nullptr;
  Change change;
  core::Options without_options, with_options;
  hook::Catalog without_catalog, with_catalog;
  std::function<void(int64_t done, int64_t total)> progress;  // may be empty
};

// NotFound: something is deleted that is not played. Other errors are those of the simulator.
absl::StatusOr<WeekAnswer> AskWeek(const WeekQuestion& question);

std::string WeekText(const WeekAnswer& answer);
Json WeekJson(const WeekAnswer& answer);

}  // namespace fairlead::cmd
