#include "autoscale-hook/lifecycle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/failure.h"

namespace fairlead::hook {
namespace {

using model::NodeRequest;
using Phase = model::NodeRequestPhase;

absl::Time WrittenAt(const RequestView& view, absl::Time now) {
  const absl::Time creation = view.request.meta.creation;
  return creation == absl::InfinitePast() || creation > now ? view.memory->first_seen : creation;
}

void Fail(RequestView& view, StepContext& context, FailureClass failure,
          absl::string_view message) {
  NodeRequest& request = view.request;
  request.phase = Phase::kFailed;
  request.failure = std::string(FailureName(failure));
  request.failed_at = context.now;
  request.message = std::string(message);
  request.unneeded_since.reset();
  view.dirty = true;
  view.memory->failure_counted = true;
  context.backoff.Failed(KeyOf(request), failure, context.now);
  context.Withdraw(view);
  context.Do(model::EmitEvent{model::Kind::kNodeRequest, "", request.meta.name, request.meta.uid,
                              true, absl::StrCat("NodeRequestFailed", request.failure),
                              request.message});
}

// True if the answer ended the phase.
bool TakeLaunchAnswer(RequestView& view, StepContext& context) {
  RequestMemory& memory = *view.memory;
  if (!memory.launch_answer.has_value()) return false;
  const absl::Status answer = *std::exchange(memory.launch_answer, std::nullopt);
  if (IsUnknownOutcome(answer)) {
    memory.launch_sent.reset();
    memory.launch_retry_at = context.now + kProviderRetry;
    return false;
  }
  const std::optional<FailureClass> failure = ClassifyFailure(answer);
  if (failure.has_value()) {
    Fail(view, context, *failure, answer.message());
    return true;
  }
  if (view.request.phase != Phase::kPending) return false;
  view.request.phase = Phase::kLaunched;
  view.request.launched_at = context.now;
  view.request.node_name = view.request.meta.name;
  view.dirty = true;
  context.WakeAt(context.now + context.options.ready_timeout);
  return true;
}

// Once in the life of this process, and again after an answer that leaves the outcome open. A
// provider whose machines live in the process (kwok) has forgotten them with the former process; to
// every other it is the same machine, by the name of the request.
void SendLaunch(RequestView& view, StepContext& context) {
  RequestMemory& memory = *view.memory;
  if (memory.launch_sent.has_value() || view.known_unneeded() ||
      view.request.meta.deletion.has_value()) {
    return;
  }
  if (memory.launch_retry_at.has_value() && context.now < *memory.launch_retry_at) {
    return context.WakeAt(*memory.launch_retry_at);
  }
  absl::StatusOr<model::Node> node = context.hook.ExpectedNode(view.request);
  if (!node.ok()) {
    // A machine that was launched may come although its type is no longer in the catalogue.
    if (view.request.phase == Phase::kPending) {
      Fail(view, context, FailureClass::kConfig, node.status().message());
    }
    return;
  }
  for (const model::NodePool* pool : context.pools) {
    if (pool->meta.name != view.request.pool) continue;
    node->taints.insert(node->taints.end(), pool->startup_taints.begin(),
                        pool->startup_taints.end());
  }
  node->ready = false;
  memory.launch_sent = context.now;
  context.Do(model::LaunchNode{view.request, *std::move(node)});
}

void AdvancePending(RequestView& view, StepContext& context) {
  if (TakeLaunchAnswer(view, context)) return;
  const absl::Time deadline = WrittenAt(view, context.now) + context.options.launch_timeout;
  if (context.now >= deadline) {
    return Fail(view, context, FailureClass::kTimeout, "the provider did not answer in time");
  }
  context.WakeAt(deadline);
  SendLaunch(view, context);
}

void BecomeRegistered(RequestView& view, StepContext& context) {
  NodeRequest& request = view.request;
  request.node_name = view.node->name;
  if (!request.registered_at.has_value()) request.registered_at = context.now;
  request.phase = Phase::kRegistered;
  view.dirty = true;
}

void BecomeReady(RequestView& view, StepContext& context) {
  NodeRequest& request = view.request;
  if (request.phase != Phase::kRegistered) BecomeRegistered(view, context);
  request.phase = Phase::kReady;
  request.ready_at = context.now;
  request.failure.clear();
  request.failed_at.reset();
  request.message.clear();
  view.dirty = true;
  context.backoff.Succeeded(KeyOf(request));
}

void AdvanceBooting(RequestView& view, StepContext& context) {
  if (TakeLaunchAnswer(view, context)) return;
  const NodeRequest& request = view.request;
  const absl::Time since =
      request.launched_at.value_or(request.registered_at.value_or(WrittenAt(view, context.now)));
  const absl::Time deadline = since + context.options.ready_timeout;
  if (context.now >= deadline) {
    return Fail(view, context, FailureClass::kTimeout,
                view.registered() ? "the node registered but did not become usable in time"
                                  : "the node did not register in time");
  }
  context.WakeAt(deadline);
  SendLaunch(view, context);
}

// The Node object of a registered request is not there. True while that is so.
bool HandleMissing(RequestView& view, StepContext& context) {
  RequestMemory& memory = *view.memory;
  if (view.registered()) {
    memory.missing_since.reset();
    return false;
  }
  if (!memory.missing_since.has_value()) memory.missing_since = context.now;
  const absl::Time due = *memory.missing_since + kMissingGrace;
  if (context.now < due) {
    context.WakeAt(due);
    return true;
  }
  view.request.phase = Phase::kDraining;
  view.request.message = "the node object is gone";
  view.dirty = true;
  context.Withdraw(view);
  context.Terminate(view);
  return true;
}

// I7 for every call that ends a machine: what has registered goes behind its taint, once that is
// seen and nothing needs it; also where the machine was told to go before it registered.
bool MayTerminate(RequestView& view, StepContext& context) {
  if (!view.registered()) return true;
  if (view.tainted()) return view.known_unneeded();
  context.Taint(view, true);
  return false;
}

void DeleteOnceGone(RequestView& view, StepContext& context) {
  RequestMemory& memory = *view.memory;
  const bool confirmed = memory.terminated || view.request.phase == Phase::kGone;
  if (!confirmed) return;
  if (view.registered()) {
    // Confirmed and yet there. Mostly the node's deletion is only not seen yet; if it stays, the
    // machine lives, or the object was left behind: then the provider is asked again.
    if (!memory.terminate_retry_at.has_value()) {
      memory.terminate_retry_at = context.now + kProviderRetry;
    }
    if (context.now < *memory.terminate_retry_at) {
      return context.WakeAt(*memory.terminate_retry_at);
    }
    memory.terminated = false;
    if (MayTerminate(view, context)) context.Terminate(view);
    return;
  }
  if (memory.delete_sent.has_value() && context.now < *memory.delete_sent + kWriteRetry) {
    return context.WakeAt(*memory.delete_sent + kWriteRetry);
  }
  memory.delete_sent = context.now;
  context.Do(model::DeleteNodeRequest{view.request.meta.name, view.request.meta.uid});
  context.WakeAt(context.now + kWriteRetry);
}

void AdvanceFailed(RequestView& view, StepContext& context) {
  RequestMemory& memory = *view.memory;
  memory.launch_answer.reset();
  if (!memory.failure_counted) {  // after a restart
    memory.failure_counted = true;
    const std::optional<FailureClass> failure = ParseFailure(view.request.failure);
    if (failure.has_value() && view.request.failed_at.has_value()) {
      context.backoff.Failed(KeyOf(view.request), *failure, *view.request.failed_at);
    }
  }
  if (!memory.terminate_sent.has_value()) {
    if (view.ready()) return BecomeReady(view, context);
    if (!view.failed_is_stored) return;  // written first, done afterwards
  }
  if (MayTerminate(view, context)) context.Terminate(view);
  DeleteOnceGone(view, context);
}

void AdvanceDraining(RequestView& view, StepContext& context) {
  view.memory->launch_answer.reset();
  const bool wanted = view.request.phase == Phase::kDraining || view.registered();
  if (wanted && MayTerminate(view, context)) context.Terminate(view);
  DeleteOnceGone(view, context);
}

}  // namespace

void AdvanceLifecycle(RequestView& view, StepContext& context) {
  NodeRequest& request = view.request;
  switch (request.phase) {
    case Phase::kPending:
    case Phase::kLaunched:
      if (view.ready()) return BecomeReady(view, context);
      if (view.registered()) {
        BecomeRegistered(view, context);
        return AdvanceBooting(view, context);
      }
      return request.phase == Phase::kPending ? AdvancePending(view, context)
                                              : AdvanceBooting(view, context);
    case Phase::kRegistered:
      if (HandleMissing(view, context)) return;
      return view.ready() ? BecomeReady(view, context) : AdvanceBooting(view, context);
    case Phase::kReady:
      view.memory->launch_answer.reset();
      HandleMissing(view, context);
      return;
    case Phase::kFailed:
      return AdvanceFailed(view, context);
    case Phase::kDraining:
    case Phase::kGone:
      return AdvanceDraining(view, context);
  }
}

}  // namespace fairlead::hook
