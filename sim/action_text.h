// An action as one line of text with all its fields; traces and hashes of traces consist of these
// lines. Thread-safety: pure function.
#pragma once

#include <string>

#include "scheduler/model/action.h"

namespace fairlead::sim {

std::string ActionText(const model::Action& action);

}  // namespace fairlead::sim
