// The life of one machine, from writing its request to the end of the object.
//
//   Pending -> Launched -> Registered -> Ready -> Draining -> (object deleted)
//      \___________\____________\-> Failed ------/
//
//   Pending     LaunchNode is sent, also after a restart: providers are idempotent by request name.
//               Without an answer, or after one that leaves the outcome open, the call is repeated
//               with back-off. Nothing is launched while a lost machine has the request's name
//               (lost_machines.h), and nothing for a node that is there without a launch of ours.
//               Machines that belong together are ordered together (launch_sets.h).
//   Launched    waits for the node to register and be ready, ready_timeout from the launch. The
//               provider may still report that the launch has failed.
//   Registered  becomes Ready at ready_timeout although something announced is missing, if at
//               least part of every announced device is present.
//   Failed      is written before anything else is done. A node that becomes usable before the
//               machine was told to go is accepted (Ready). Otherwise the machine is terminated,
//               a registered node only behind its fence (removal.h) and if nothing needs it (I7).
//               The object is deleted when the provider has confirmed and the node is gone.
//   Ready       status.allocatable says what the node really has. A node that is missing for
//               kMissingGrace was deleted by a user: its machine is terminated.
//   Draining    is written before anything else is done. TerminateNode is repeated with back-off
//               until confirmed; then the object is deleted. A node that registers only now, or
//               is needed after a restart, is tainted and terminated once nothing needs it.
//
// A machine without a registered node is terminated only after a consistent list has shown that no
// node of it exists (node_lists.h).
//
// A machine whose id is not known may be one that a node without our label stands for, with pods on
// it. A provider that is asked to end it tells its id instead (providers/provider.h). The node is
// then found by the id, and I7 holds for it as for any other.
//
// The finalizer keeps an object that a user deletes until its machine is gone: an unregistered
// machine is drained at once, a registered one as soon as nothing needs it.
//
// A time-out counts from meta.creation (the API server's clock; a skew shortens or lengthens it by
// itself), or from the first sight if that is unset or in the future.
//
// Thread-safety: none.
#pragma once

#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Advances the machine as far as possible now, but for the order of a Pending one. O(1).
void AdvanceLifecycle(MachineView& view, StepContext& context);

// Orders the Pending ones whose turn it is (launch_sets.h), and gives back what was ordered, or was
// to be ordered, beside machines that cannot be had. Call it when all that this step cancels is
// cancelled: it may be of a set. O(rows log rows).
void OrderMachines(StepContext& context);

}  // namespace fairlead::hook
