// Taints by which a cloud's agent says that it takes a node's machine back soon: the end of spot
// capacity, or maintenance. (A rebalance recommendation is not one: the machine may stay.)
//
// Sources: aws-node-termination-handler (docs, TAINT_NODE), GKE's maintenance handler.
// Thread-safety: pure functions.
#pragma once

#include "scheduler/model/node.h"

namespace fairlead::hook {

bool IsInterruptionTaint(const model::Taint& taint);

}  // namespace fairlead::hook
