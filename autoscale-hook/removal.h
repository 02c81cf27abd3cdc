// Giving back what nothing needs.
//
// A node of ours that is unneeded for `unneeded_after` (NodeRequest.unneeded_since, so that a
// restart does not begin anew) gets the taint to-be-removed:NoSchedule. Only when the taint is
// *seen* on it, which means that no pod can have been placed there since unknown to us, and it
// still is unneeded and due, it is drained: phase Draining and TerminateNode (I7). Needed again
// before that: the taint is taken off. A request whose node has not registered is cancelled after
// `cancel_after`. A request that somebody deletes is due at once, but what is needed stays. At most
// max_removals_per_step taints and terminations, dearest first.
//
// Nodes without a request, and requests without an entry in StepInput::nodes, are never touched.
// Thread-safety: none.
#pragma once

#include "autoscale-hook/step_context.h"

namespace fairlead::hook {

// After AdvanceLifecycle of every view. O(n log n).
void RemoveUnneeded(StepContext& context);

}  // namespace fairlead::hook
