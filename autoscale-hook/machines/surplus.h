// Ends a machine that a provider launched besides the one that was ordered, while the other one is
// used. As long as none of them is used they are removed together (removal.h). Each counts against
// the caps until its end is confirmed.
//
// A node is surplus while another node of its request is needed and it is not. After
// `unneeded_after` it gets the removal taint, and behind its fence (removal.h) the provider is told
// to end this machine alone, by its id; a node without a providerID is left alone. While it has the
// taint, and its request another node, no pod of ours goes there (core::ManagedNodes), also after a
// restart. A machine that an answer told, and that has had no node for `ready_timeout` while
// another one serves, is ended too. How long it has been so is known to this process only: a
// restart begins again.
//
// Thread-safety: none.
#pragma once

#include <cstdint>

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Moves the surplus nodes of the view from `nodes` to `surplus`. O(nodes).
void SetSurplusApart(MachineView& view);

// Call it after SetSurplusApart. Uses up `left`, the taints and ends that this step may still make.
void RemoveSurplus(MachineView& view, StepContext& context, int64_t& left);

}  // namespace fairlead::hook
