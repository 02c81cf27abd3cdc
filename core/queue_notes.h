// Contradictions in a Queue's own spec that do not prevent its use. Thread-safety: pure.
#pragma once

#include <string>

#include "scheduler/model/workload_objects.h"

namespace fairlead::core {

// "GPU quota 8 is above its limit 4; ...", or empty.
std::string ContradictionOf(const model::Queue& queue);

}  // namespace fairlead::core
