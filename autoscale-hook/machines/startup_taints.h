// Taints that a new node has for a while, and that another program takes off. Until they are gone
// the node is not usable, and counts as on its way: nothing is bought in its place before the
// time-out of its request.
//
// Sources: Kubernetes (the node lifecycle controller, cloud-controller-manager), Karpenter (known
// ephemeral taints), cluster-autoscaler (startup taints), and the NodePool's own.
//
// Thread-safety: pure functions. Complexity: O(taints of the pool).
#pragma once

#include <vector>

#include "scheduler/model/node.h"

namespace fairlead::hook {

bool IsStartupTaint(const model::Taint& taint, const std::vector<model::Taint>& of_pool);

}  // namespace fairlead::hook
