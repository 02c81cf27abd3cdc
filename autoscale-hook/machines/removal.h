// Scales down: ends machines that nothing needs.
//
// A machine that has been unneeded for `unneeded_after` (NodeRequest.unneeded_since, so that a
// restart does not begin again) gets the taint to-be-removed:NoSchedule. The taint alone fences
// nothing: another scheduler may have bound a pod just before, and the watches of pods and nodes
// are not ordered between each other. The machine is *fenced* when the taint is seen on its node
// and the pod watch has shown everything up to the first version of the node with the taint. From
// then on no pod can have been bound there unknown to us (core::ManagedNodes decides). If the
// machine is still unneeded and due then, it is drained: phase Draining, and after that is
// Written(), TerminateNode (I7). If it is needed again before that, the taint is removed. A request
// whose node has not registered is cancelled after `cancel_after`; its fence is a list of nodes
// (node_lists.h). A request that a user deletes is due at once, but a needed one stays. Each step
// makes at most max_removals_per_step taints and drains, most expensive first.
//
// Nodes without a request, and requests without an entry in StepInput::nodes, are never touched.
// Thread-safety: none.
#pragma once

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Call it after AdvanceLifecycle of every view. O(n log n).
void RemoveUnneeded(StepContext& context);

}  // namespace fairlead::hook
