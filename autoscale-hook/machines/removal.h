// Scales down: ends machines that nothing needs.
//
// A machine that is unneeded for `unneeded_after` (NodeRequest.unneeded_since, so that a restart
// does not begin again) gets the taint to-be-removed:NoSchedule. The taint alone fences nothing:
// another scheduler may have bound a pod just before, and the watches of pods and nodes are not
// ordered between each other. The machine is *fenced* when the taint is seen on its node and the
// pod watch has shown everything up to the node's version that bears it: from then on no pod can
// have been bound there unknown to us (core::ManagedNodes decides). If it still is unneeded and due
// then, it is drained: phase Draining, and after that is Written(), TerminateNode (I7). Needed
// again before that: the taint is taken off. A request whose node has not registered is cancelled
// after `cancel_after`. A request that a user deletes is due at once, but what is needed stays. At
// most max_removals_per_step taints and drains, dearest first.
//
// Nodes without a request, and requests without an entry in StepInput::nodes, are never touched.
// Thread-safety: none.
#pragma once

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// After AdvanceLifecycle of every view. O(n log n).
void RemoveUnneeded(StepContext& context);

}  // namespace fairlead::hook
