// Replays the Philly trace in virtual time through the real state, queues, plugins and engine: the
// cycle of `fairlead run`, with virtual clusters as leaf queues that may borrow.
//
// The replay adds the world around it: jobs are submitted and end. An evicted job is gone at once
// and requests the same again with its former age, as a Job controller would. A cycle runs at every
// second in which something happened, and when the engine's timer is due.
//
// Ownership: nothing outlives the call. Thread-safety: calls are independent of each other.
// Determinism: the same options give the same result. Errors: Internal if the engine's accounts
// disagree with the state, or if some jobs never start.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/engine/engine.h"
#include "tests/replay/philly.h"

namespace fairlead::replay {

// The duration that every pod states for its job.
enum class DurationsSaid {
  kNone,
  kTrue,
  kRough,  // off by a factor between 1/4 and 4, constant per job
};
// kRough of a job, at least a second.
int64_t RoughDuration(size_t job, int64_t duration_s);

struct PhillyOptions {
  int64_t gpus = 512;
  std::vector<int64_t> quotas;  // in GPUs, by cluster; the rest belongs to no quota
  // Weight over quota: in proportion to the quota. Else it is 1 for every queue.
  bool weight_by_quota = false;
  engine::EngineOptions engine;
  state::JobOrder job_order = {};
  DurationsSaid durations = DurationsSaid::kNone;
  // Time of work between two checkpoints; infinite: an evicted job begins from zero. Zero: nothing
  // is lost.
  absl::Duration checkpoint = absl::InfiniteDuration();
};

// The engine's default configuration, without the hook, and without consolidation: a moved job
// begins again here.
engine::EngineOptions PhillyEngine();

struct PhillyReplayStats {
  int64_t cycles = 0, evictions = 0;
  int64_t waiting_sum = 0, waiting_max = 0;  // workloads, over the cycles
};

absl::StatusOr<PhillyResult> ReplayPhilly(const PhillyTrace& trace, const PhillyOptions& options,
                                          PhillyReplayStats* stats = nullptr);

}  // namespace fairlead::replay
