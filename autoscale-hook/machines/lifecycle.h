// One machine from the request that is written to the object that is gone.
//
//   Pending -> Launched -> Registered -> Ready -> Draining -> (object deleted)
//      \___________\____________\-> Failed ------/
//
// Pending     LaunchNode is sent, also after a restart: providers are idempotent by request name.
//             After an answer that leaves the outcome open the call is repeated with back-off.
// Launched    waits for the node to register and be ready, ready_timeout from the launch. The
//             provider may still say that the launch has failed.
// Registered  usable at ready_timeout though not all that was promised is there, if every promised
//             device is there in part: then it is Ready as it is.
// Failed      is written before anything else is done. A node that turns up usable before the
//             machine was told to go is accepted after all (Ready). Otherwise the machine is
//             terminated, a registered node only behind its fence (removal.h) and if nothing needs
//             it (I7). The object is deleted when the provider has confirmed and the node is gone.
// Ready       status.allocatable says what the node really has. A node that disappears for
//             kMissingGrace was deleted by others: its machine is terminated.
// Draining    is written before anything else is done. TerminateNode is repeated with back-off
// until
//             confirmed; then the object is deleted. A node that registers only now, or is needed
//             after a restart, is first tainted and let go by its pods.
// An object that a user deletes stays, by its finalizer, until its machine is gone: one that has
// not registered is drained at once, one that has as soon as nothing needs it.
//
// A time-out counts from meta.creation (the API server's clock; a skew shortens or lengthens it by
// itself), or from the first sight where that is unset or in the future.
//
// Thread-safety: none.
#pragma once

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Moves the machine as far as it goes now. O(1).
void AdvanceLifecycle(MachineView& view, StepContext& context);

}  // namespace fairlead::hook
