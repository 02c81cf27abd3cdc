// Textbook policies on the Philly trace, written independently of the scheduler for comparison: one
// pool of nodes for all virtual clusters, no job is interrupted.
//
// A pod of up to 8 GPUs goes to the node with the least left over, full pods to empty nodes; ties
// to the lower number. Thread-safety: pure functions. Complexity: O(jobs * (shapes + nodes) * log).
#pragma once

#include <cstdint>

#include "tests/replay/philly.h"

namespace fairlead::replay {

enum class PolicyOrder : uint8_t {
  kFifo,  // by submission
  kSjf,   // by duration, which a real scheduler does not know; then by submission
};

struct Policy {
  PolicyOrder order = PolicyOrder::kFifo;
  // True: a job that does not fit blocks all jobs behind it. False: it is passed over.
  bool strict = false;
};

PhillyResult RunPolicy(const PhillyTrace& trace, int64_t gpus, const Policy& policy);

}  // namespace fairlead::replay
