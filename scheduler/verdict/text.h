// Puts a verdict into words. Conditions, events, the command line and the dashboard all show the
// text of this one place. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// One or two sentences with the numbers, at most 1024 bytes of UTF-8:
//  "Queue research has reached its limit of 8 GPUs: 8 in use, 1 requested. Position 1 in the
//  queue." "0 of 12 nodes fit: 8 lack GPUs (at least 2 short), 4 have taint gpu=a100."
std::string Message(const Verdict& verdict);

// One sentence without changing numbers. It is written once per code, to the condition of pods and
// groups. "Queue research cannot give 1 GPU within its limit of 8 GPUs."
std::string Sentence(const Verdict& verdict);

// What helps with any verdict of this code; Message uses it if the verdict has no unblockers.
std::vector<Unblocker> DefaultUnblockers(const Verdict& verdict);

// The detail of a workload that waits for capacity and may not evict pods before `until`.
std::string DelayClause(absl::Time until);

// "nvidia.com/gpu" -> "GPUs", "cpu" -> "CPU cores", "memory" -> "memory", "deviceclass:x" ->
// "devices of class x"; any other name is unchanged.
std::string ResourceNoun(absl::string_view resource);

}  // namespace fairlead::verdict
