// Replays the Philly trace in virtual time through the real state, queues, plugins and engine: the
// cycle that `fairlead run` drives, with virtual clusters as leaf queues that may borrow.
//
// What the replay adds is the world around it: jobs are submitted and end; who is evicted is gone
// at once and, as a Job controller would, asks for the same again with its former age. A cycle runs
// at every second in which something happened, and when the engine asks to be woken.
//
// Ownership: nothing outlives the call. Thread-safety: calls are independent of each other.
// Determinism: the same options give the same result. Errors: Internal if the engine's books
// disagree with the state, or if jobs are left over that never start.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/engine/engine.h"
#include "tests/replay/philly.h"

namespace fairlead::replay {

// What every pod says about how long its job runs.
enum class DurationsSaid {
  kNone,
  kTrue,
  kRough,  // off by a factor between 1/4 and 4, in a job always the same one
};
// kRough of a job, at least a second.
int64_t RoughDuration(size_t job, int64_t duration_s);

struct PhillyOptions {
  int64_t gpus = 512;
  std::vector<int64_t> quotas;  // in GPUs, by cluster; what is left over counts for nobody
  // Weight over quota: in proportion to the quota. Else everybody's is 1.
  bool weight_by_quota = false;
  engine::EngineOptions engine;
  state::JobOrder job_order = {};
  DurationsSaid durations = DurationsSaid::kNone;
  // Time of work between two checkpoints; infinite: who is evicted begins from zero. Zero: nothing
  // is lost.
  absl::Duration checkpoint = absl::InfiniteDuration();
};

// The engine as it is configured by default, without the hook, and without consolidation: who is
// moved begins anew here.
engine::EngineOptions PhillyEngine();

struct PhillyReplayStats {
  int64_t cycles = 0, evictions = 0;
  int64_t waiting_sum = 0, waiting_max = 0;  // workloads, over the cycles
};

absl::StatusOr<PhillyResult> ReplayPhilly(const PhillyTrace& trace, const PhillyOptions& options,
                                          PhillyReplayStats* stats = nullptr);

}  // namespace fairlead::replay
