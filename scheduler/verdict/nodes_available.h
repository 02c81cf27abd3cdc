// What nodes said about a pod, in the words of kube-scheduler: "0/12 nodes are available: 4 node(s)
// had untolerated taint(s), 8 Insufficient nvidia.com/gpu." People and dashboards know this text.
// Its grammar is that of FitError.Error (pkg/scheduler/framework/types.go, v1.36): every reason of
// a node is counted, each count and its reason are one text, and these texts are sorted as text.
// Thread-safety: pure functions. Complexity: O(n log n) in the reasons.
#pragma once

#include <string>

#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// The whole text, which ends with a full stop. Empty if the verdict does not rest on what nodes
// said: policy holds the workload, its nodes or victims are on their way, or no node was asked. If
// there is no node at all: "no nodes available to schedule pods." Nodes that would take the pod and
// not the workload are counted with a reason of Fairlead's own. If a search for victims found none,
// the text goes on, as upstream's does after a preemption that found none: " preemption: 0/12 nodes
// are available: ...".
std::string NodesAvailable(const Verdict& verdict);
// True if that is not empty. O(predicates).
bool RestsOnNodes(const Verdict& verdict);

}  // namespace fairlead::verdict
