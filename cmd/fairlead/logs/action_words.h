// Actions in words, for the log and for metrics. Thread-safety: pure functions.
#pragma once

#include <string>

#include "scheduler/model/action.h"

namespace fairlead::cmd {

// "bind", "evict", "create_node_request": one word per kind of action.
const char* ActionName(const model::Action& action);

// "bind default/web to node-1"
std::string Describe(const model::Action& action);

}  // namespace fairlead::cmd
