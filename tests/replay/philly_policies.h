// Textbook policies on the Philly trace, written apart from the scheduler as something to compare
// with: one pool of nodes for all virtual clusters, nobody is interrupted.
//
// A pod of up to 8 GPUs goes to the node where least is left over, full pods to empty nodes; ties
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
  // True: who does not fit holds up everybody behind it. False: it is passed over.
  bool strict = false;
};

PhillyResult RunPolicy(const PhillyTrace& trace, int64_t gpus, const Policy& policy);

}  // namespace fairlead::replay
