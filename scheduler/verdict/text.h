// Puts a verdict into words. The one place that words a message: conditions, events, the command
// line and the dashboard all show this text. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// One or two sentences with the numbers, at most 1024 bytes of UTF-8:
//  "Queue research has reached its limit of 8 GPUs: 8 in use, 1 requested. Position 1 in the
//  queue." "0 of 12 nodes fit: 8 lack nvidia.com/gpu (2 short on the best one), 4 have taint
//  gpu=a100."
std::string Message(const Verdict& verdict);

// What helps with a verdict of this code where nobody knows better: what Message says if the
// verdict brings no unblockers.
std::vector<Unblocker> DefaultUnblockers(const Verdict& verdict);

// The detail of who waits for capacity, and may not make others give way before then.
std::string DelayClause(absl::Time until);

// "nvidia.com/gpu" -> "GPUs", "cpu" -> "CPU cores", "memory" -> "memory", "deviceclass:x" ->
// "devices of class x", others as they are.
std::string ResourceNoun(absl::string_view resource);

}  // namespace fairlead::verdict
