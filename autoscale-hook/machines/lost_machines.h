// Machines whose NodeRequest is gone although they may exist: the object was deleted by force, its
// finalizer taken off, and perhaps made again under its name (machine_ledger.h).
//
//   - A lost machine counts against the caps until its end is confirmed, and no pod of ours is
//     promised to it.
//   - Without a registered node it is ended once a list has shown none (node_lists.h); if its node
//     was there, kMissingGrace after the node has gone.
//   - With a registered node it is not ended: pods may be on the node (I7). The current request of
//     its name takes it over, machine and node. If there is none, the request is written again
//     (Hook::Impl::AdoptOrphans), and takes it over when it is seen.
//   - Until then the current request of its name launches nothing (lifecycle.h).
// After a restart nothing tells of a lost machine but its node.
//
// Thread-safety: none.
#pragma once

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Gives a machine with a registered node to the current request of its name, and drops machines
// that another row has. True if a row was dropped. O(1).
bool TakeOverLost(MachineView& view, MachineLedger& ledger);

// Ends the machine, if it has no registered node. True if its end is confirmed. O(nodes).
bool AdvanceLost(MachineView& view, StepContext& context);

}  // namespace fairlead::hook
