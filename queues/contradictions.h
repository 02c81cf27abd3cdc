// Contradictions in a Queue's own spec that do not prevent its use. Thread-safety: pure.
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/workload_objects.h"

namespace fairlead::queues {

struct Contradiction {
  std::string field;  // "spec.resources.gpu.quota"
  std::string what;   // "GPU quota 8 is above its limit 4"
};
std::vector<Contradiction> ContradictionsOf(const model::Queue& queue);

// The same without the fields, joined by "; "; empty if there are none.
std::string ContradictionOf(const model::Queue& queue);

}  // namespace fairlead::queues
