#include "autoscale-hook/machines/lifecycle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/machines/launch_sets.h"
#include "autoscale-hook/provisioning/failure.h"
#include "autoscale-hook/provisioning/provisioning_guard.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using model::NodeRequest;
using Phase = model::NodeRequestPhase;

// The API server's clock may differ from ours: the age of our own request is counted by ours, and
// from when the object was seen, because nothing is launched before.
absl::Time WrittenAt(const MachineView& view, absl::Time now) {
  if (view.machine->created_here) return view.machine->first_seen;
  const absl::Time creation = view.request().meta.creation;
  return creation == absl::InfinitePast() || creation > now ? view.machine->first_seen : creation;
}

// An earlier attempt may have launched a machine although the last one was refused: one of unknown
// outcome, or one of a former leader.
bool MayHaveLaunched(const Machine& machine) {
  return !machine.reported_gone && (machine.launch.in_doubt() || !machine.created_here);
}

// `in_doubt`: a machine may have been launched all the same. Then the request counts against the
// caps until its end is confirmed, as after a time-out.
void Fail(MachineView& view, StepContext& context, FailureClass failure, bool in_doubt,
          absl::string_view message) {
  NodeRequest& request = view.request();
  request.phase = Phase::kFailed;
  request.failure = std::string(FailureName(in_doubt ? FailureClass::kOther : failure));
  request.failed_at = context.now;
  request.message = ShortMessage(message);
  request.unneeded_since.reset();
  view.machine->failure_counted = true;
  context.backoff.Failed(KeyOf(request), failure, context.now, request.message);
  context.Withdraw(view);
  context.Do(model::EmitEvent{model::Kind::kNodeRequest, "", request.meta.name, request.meta.uid,
                              true, absl::StrCat("NodeRequestFailed", request.failure),
                              request.message});
}

// True if the answer ended the phase.
bool TakeLaunchAnswer(MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  if (!machine.launch_answer.has_value()) return false;
  const absl::Status answer = *std::exchange(machine.launch_answer, std::nullopt);
  if (IsUnknownOutcome(answer)) {
    machine.desired.message = ShortMessage(
        absl::StrCat("LaunchNode: outcome unknown, attempts: ", machine.launch.failures(), ": ",
                     answer.message()));
    return false;
  }
  if (const std::optional<FailureClass> failure = ClassifyFailure(answer)) {
    Fail(view, context, *failure, MayHaveLaunched(machine), answer.message());
    return true;
  }
  if (!machine.desired.launched_at.has_value()) machine.desired.launched_at = context.now;
  if (machine.desired.phase != Phase::kPending) return false;
  machine.desired.phase = Phase::kLaunched;
  machine.desired.message.clear();
  context.WakeAt(context.now + context.options.ready_timeout);
  return true;
}

// The node to be launched. If its NodePool has gone since it was decided, its labels and taints are
// not known any more: a machine without them would take pods that the pool kept away.
absl::StatusOr<model::Node> NodeToLaunch(const NodeRequest& request, const StepContext& context) {
  const bool has_pool =
      request.pool.empty() ||
      std::any_of(context.pools.begin(), context.pools.end(),
                  [&](const model::NodePool* pool) { return pool->meta.name == request.pool; });
  if (has_pool && !context.hook.KnowsReservation(request)) {
    return absl::NotFoundError(absl::StrCat("NodeRequest ", request.meta.name,
                                            ": spec.reservation \"", request.reservation,
                                            "\" is not in the catalogue"));
  }
  if (has_pool) return context.hook.ExpectedNode(request);
  return absl::NotFoundError(
      absl::StrCat("NodePool ", request.pool, " is gone, or was never in force in this process"));
}

// Sends the launch once in the life of this process, and again after an answer of unknown outcome.
// A provider whose machines live in the process (kwok) has lost them with the former
// process. For every other provider it is the same machine, by the name of the request.
void SendLaunch(MachineView& view, StepContext& context) {
  WriteAttempts& launch = view.machine->launch;
  if (view.known_unneeded() || view.request().meta.deletion.has_value()) return;
  // Taken over (lost_machines.h): the provider knows the machine by another uid.
  if (view.registered() && !view.request().launched_at.has_value()) return;
  if (context.ledger.HasLost(view.machine->name())) {
    view.request().message = "waiting for the end of the former machine of this name";
    return;
  }
  if (!launch.MayGo(context.now)) return context.WakeAt(launch.due());
  absl::StatusOr<model::Node> node = NodeToLaunch(view.request(), context);
  if (!node.ok()) {
    // A launched machine may come although its type is no longer in the catalogue, or its pool is
    // gone.
    if (view.request().phase == Phase::kPending) {
      Fail(view, context, FailureClass::kConfig, MayHaveLaunched(*view.machine),
           node.status().message());
    }
    return;
  }
  model::LaunchNode order;
  order.request = view.request();
  for (const model::NodePool* pool : context.pools) {
    if (pool->meta.name != view.request().pool) continue;
    order.startup_taints = pool->startup_taints;
    order.node_class = pool->node_class;
  }
  order.reservation_labels = context.hook.ReservationLabels(view.request());
  node->taints.insert(node->taints.end(), order.startup_taints.begin(), order.startup_taints.end());
  node->ready = false;
  order.node = *std::move(node);
  launch.Sent(context.now, kLaunchRules);
  context.Do(std::move(order));
}

void AdvancePending(MachineView& view, StepContext& context) {
  if (TakeLaunchAnswer(view, context)) return;
  const absl::Time deadline = WrittenAt(view, context.now) + context.options.launch_timeout;
  if (context.now < deadline) return context.WakeAt(deadline);
  // Not the provider's failure: it was not asked.
  if (!view.machine->launch.started() && LaunchSetOf(view.request()).has_value()) {
    return GiveBack(view, context, "not all of their NodeRequests were seen in time");
  }
  const std::string& last = view.request().message;
  Fail(view, context, FailureClass::kTimeout, /*in_doubt=*/false,
       last.empty() ? "the provider did not answer LaunchNode in time" : last);
}

// The node that represents the request from now on.
void TakeNode(MachineView& view, StepContext& context) {
  NodeRequest& request = view.request();
  request.node_name = view.node()->name;
  context.ledger.SetProviderId(*view.machine, view.node()->provider_id);
  if (request.phase == Phase::kReady) request.allocatable = view.node()->allocatable;
}

void BecomeRegistered(MachineView& view, StepContext& context) {
  NodeRequest& request = view.request();
  if (!request.registered_at.has_value()) request.registered_at = context.now;
  request.phase = Phase::kRegistered;
  TakeNode(view, context);
}

void BecomeReady(MachineView& view, StepContext& context) {
  NodeRequest& request = view.request();
  if (!request.registered_at.has_value()) request.registered_at = context.now;
  request.phase = Phase::kReady;
  request.ready_at = context.now;
  TakeNode(view, context);
  request.failure.clear();
  request.failed_at.reset();
  request.message.clear();
  context.backoff.Succeeded(KeyOf(request));
}

void AdvanceBooting(MachineView& view, StepContext& context) {
  if (TakeLaunchAnswer(view, context)) return;
  const NodeRequest& request = view.request();
  const absl::Time since =
      request.launched_at.value_or(request.registered_at.value_or(WrittenAt(view, context.now)));
  const absl::Time deadline = since + context.options.ready_timeout;
  if (context.now >= deadline) {
    if (view.registered() && view.node()->usable_in_part) return BecomeReady(view, context);
    return Fail(view, context, FailureClass::kTimeout, /*in_doubt=*/false,
                view.registered() ? "the node registered but did not become usable in time"
                                  : "the node did not register in time");
  }
  context.WakeAt(deadline);
  SendLaunch(view, context);
}

// Handles a registered request without a Node object. True while the object is missing.
bool HandleMissing(MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  if (view.registered()) {
    machine.missing_since.reset();
    return false;
  }
  if (!machine.missing_since.has_value()) machine.missing_since = context.now;
  const absl::Time due = *machine.missing_since + kMissingGrace;
  if (context.now < due && !machine.reported_gone) {
    context.WakeAt(due);
    return true;
  }
  machine.desired.phase = Phase::kDraining;
  machine.desired.message =
      machine.reported_gone ? "the machine is gone" : "the Node object is gone";
  context.Withdraw(view);
  return true;
}

// Of several nodes the one that the request named may be gone.
void FollowNode(MachineView& view, StepContext& context) {
  if (!view.registered()) return;
  const auto is_named = [&](const NodeUse* node) { return node->name == view.request().node_name; };
  if (std::any_of(view.nodes.begin(), view.nodes.end(), is_named) ||
      std::any_of(view.surplus.begin(), view.surplus.end(), is_named)) {
    return;
  }
  TakeNode(view, context);
}

// I7 for every call that ends a machine: a registered machine goes only behind its fence and if
// nothing needs it, even if it was told to go before it registered.
bool MayTerminate(MachineView& view, StepContext& context) {
  if (!view.registered()) return true;
  if (view.fenced()) return view.known_unneeded();
  context.Taint(view, true);
  return false;
}

// The object of a witness stays after its machine: it is the memory of that for the next process.
// False: it is to be deleted.
bool KeepRecord(MachineView& view, StepContext& context) {
  NodeRequest& request = view.request();
  if (request.failure != ProvisioningGuard::kUnhelpful || !request.failed_at.has_value() ||
      request.meta.deletion.has_value()) {
    return false;
  }
  // A time from the future must not keep it for ever.
  const absl::Time until =
      std::min(*request.failed_at, context.now) + context.options.guard.backoff_initial;
  if (context.now >= until) return false;
  request.phase = Phase::kGone;
  request.message =
      "the machine is gone; kept as a record: no pod that the node was provisioned for used it";
  context.WakeAt(until);
  return true;
}

void DeleteOnceGone(MachineView& view, StepContext& context) {
  const bool gone = view.request().phase == Phase::kGone || view.Ended();
  if (gone && !view.registered() && !KeepRecord(view, context)) context.Delete(view);
}

void AdvanceFailed(MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  machine.launch_answer.reset();
  if (!machine.failure_counted) {  // after a restart
    machine.failure_counted = true;
    const std::optional<FailureClass> failure = ParseFailure(view.request().failure);
    if (failure.has_value() && view.request().failed_at.has_value()) {
      context.backoff.Failed(KeyOf(view.request()), *failure, *view.request().failed_at,
                             view.request().message);
    }
  }
  if (!machine.EndStarted()) {
    if (view.ready() && !view.request().meta.deletion.has_value()) {
      return BecomeReady(view, context);
    }
    if (!machine.Written(Phase::kFailed)) return;
  }
  if (MayTerminate(view, context)) context.Terminate(view);
  DeleteOnceGone(view, context);
}

void AdvanceDraining(MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  machine.launch_answer.reset();
  const Phase phase = view.request().phase;
  context.NoteWitness(view);
  if (!machine.Written(phase)) return;
  const bool wanted = phase == Phase::kDraining || view.registered();
  if (wanted && MayTerminate(view, context)) context.Terminate(view);
  DeleteOnceGone(view, context);
}

}  // namespace

void OrderMachines(StepContext& context) {
  GiveBackFailedSets(context);
  const LaunchSets sets(context.ledger);
  for (MachineView& view : context.views) {
    if (view.request().phase != Phase::kPending) continue;
    const LaunchSets::Turn turn = sets.TurnOf(*view.machine, context.now);
    switch (turn.kind) {
      case LaunchSets::Turn::Kind::kOrder:
        SendLaunch(view, context);
        break;
      case LaunchSets::Turn::Kind::kWait:
        context.WakeAt(turn.until);
        break;
      case LaunchSets::Turn::Kind::kGiveBack:
        GiveBack(view, context, turn.why);
        break;
    }
  }
  GiveBackFailedSets(context);  // of types that have left the catalogue
}

void AdvanceLifecycle(MachineView& view, StepContext& context) {
  const bool deleted = view.request().meta.deletion.has_value();
  switch (view.request().phase) {
    case Phase::kPending:
    case Phase::kLaunched:
      if (view.ready()) return BecomeReady(view, context);
      if (view.registered()) {
        BecomeRegistered(view, context);
        return AdvanceBooting(view, context);
      }
      if (deleted) {
        view.request().phase = Phase::kDraining;
        view.request().message = "cancelled: the NodeRequest was deleted";
        return context.Withdraw(view);
      }
      return view.request().phase == Phase::kPending ? AdvancePending(view, context)
                                                     : AdvanceBooting(view, context);
    case Phase::kRegistered:
      if (HandleMissing(view, context)) return;
      return view.ready() ? BecomeReady(view, context) : AdvanceBooting(view, context);
    case Phase::kReady:
      if (view.machine->launch_answer.has_value()) view.machine->launch_answer.reset();
      if (!HandleMissing(view, context)) FollowNode(view, context);
      return;
    case Phase::kFailed:
      return AdvanceFailed(view, context);
    case Phase::kDraining:
    case Phase::kGone:
      return AdvanceDraining(view, context);
  }
}

}  // namespace fairlead::hook
