// One NodeRequest from written to gone.
//
//   Pending -> Launched -> Registered -> Ready -> Draining -> (object deleted)
//      \___________\____________\-> Failed ------/
//
// Pending     LaunchNode is sent, also after a restart: providers are idempotent by request name.
//             An answer that leaves the outcome open is followed by the same call again.
// Launched    waits for the node to register and be ready, ready_timeout from the launch.
// Failed      is written before anything else is done. A node that turns up usable before the
//             machine was told to go is accepted after all (Ready). Otherwise the machine is
//             terminated, a registered node only after its taint is seen and nothing needs it (I7),
//             and the object is deleted when the provider has confirmed and the node is gone.
// Ready       a node that disappears for kMissingGrace was deleted by others: its machine is
//             terminated.
// Draining    TerminateNode is repeated until confirmed; then the object is deleted. A node that
//             registers only now, or is needed after a restart, is first tainted and let go by its
//             pods.
// A time-out counts from meta.creation (the API server's clock; a skew shortens or lengthens it by
// itself), or from the first sight where that is unset or in the future.
//
// Thread-safety: none.
#pragma once

#include "autoscale-hook/step_context.h"

namespace fairlead::hook {

// Moves the request as far as it goes now. O(1).
void AdvanceLifecycle(RequestView& view, StepContext& context);

}  // namespace fairlead::hook
