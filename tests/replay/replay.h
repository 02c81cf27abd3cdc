// Replays a trace through the real state, queues, plugins and engine: pods arrive one by one, none
// leaves, and a pod without a place is rejected for good.
//
// Ownership: nothing outlives the call. Thread-safety: calls are independent of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/replay/openb.h"

namespace fairlead::replay {

struct ReplayOptions {
  // The score that chooses among nodes: "GpuFragmentation", "GpuFragmentation:learned" (no typical
  // pods given), or "default" for the default profile (bin packing).
  std::string plugin = "GpuFragmentation";
  int64_t seed = 42;
  int64_t percent = 130;                 // of capacity that arrives
  std::optional<int64_t> shuffle_names;  // with this seed; absent: as in the file
};

struct ReplayResult {
  int64_t capacity_milli = 0;
  // Allocation in percent of capacity at each whole percent of arrived demand: the mean over the
  // arrivals that round to it, as published. NaN where none does.
  std::vector<double> curve;
  int64_t arrived_milli = 0, allocated_milli = 0;
  int64_t placed = 0, refused = 0;
  // The mean at options.percent; the last value if the trace ends before.
  [[nodiscard]] double Final() const;
};

absl::StatusOr<ReplayResult> Replay(const std::vector<TraceNode>& nodes,
                                    const std::vector<TracePod>& pods,
                                    const ReplayOptions& options);

}  // namespace fairlead::replay
