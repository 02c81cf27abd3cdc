#include "autoscale-hook/machines/step_context.h"

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr size_t kMaxMessageBytes = 512;

// Compares the fields that matter after a restart; the rest of a status is for people.
bool SameDecision(const model::NodeRequest& a, const model::NodeRequest& b) {
  return a.phase == b.phase && a.failure == b.failure &&
         a.unneeded_since.has_value() == b.unneeded_since.has_value();
}

}  // namespace

std::string ShortMessage(absl::string_view text) {
  if (text.size() <= kMaxMessageBytes) return std::string(text);
  size_t end = kMaxMessageBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

void StepContext::Terminate(MachineView& view) {
  Machine& machine = *view.machine;
  ProviderCall& call = machine.terminate;
  if (machine.gone) return;
  if (call.sent_at.has_value()) {
    const absl::Time due = call.retry_at.value_or(
        *call.sent_at + PauseAfter(call.attempts, kProviderSilence, kProviderRetryMax));
    if (now < due) return WakeAt(due);
    if (!call.retry_at.has_value()) {
      view.request().message =
          absl::StrCat("the provider has not answered TerminateNode, attempts: ", call.attempts);
    }
  }
  call.sent_at = now;
  call.retry_at.reset();
  ++call.attempts;
  const model::NodeRequest& request = view.request();
  bool sent = false;
  for (const NodeUse* node : view.nodes) {
    if (!node->registered) continue;
    Do(model::TerminateNode{request.meta.name, request.provider, node->name, node->provider_id});
    sent = true;
  }
  if (!sent) {
    Do(model::TerminateNode{request.meta.name, request.provider, request.node_name,
                            request.provider_id});
  }
  WakeAt(now + PauseAfter(call.attempts, kProviderSilence, kProviderRetryMax));
}

bool StepContext::Taint(MachineView& view, bool present) {
  Machine& machine = *view.machine;
  if (machine.taint_wanted != present) machine.taint_attempts = 0;
  if (machine.taint_sent.has_value() && machine.taint_attempts > 0) {
    const absl::Time due =
        *machine.taint_sent + PauseAfter(machine.taint_attempts, kWriteRetry, kWriteRetryMax);
    if (now < due) {
      WakeAt(due);
      return false;
    }
  }
  bool sent = false;
  for (const NodeUse* node : view.nodes) {
    if (!node->registered || node->removal_tainted == present) continue;
    Do(model::SetNodeTaint{node->name,
                           node->uid,
                           {model::kRemovalTaint, "", model::TaintEffect::kNoSchedule},
                           present});
    sent = true;
  }
  if (!sent) return false;  // all nodes have the taint; pods bound before it are awaited
  machine.taint_sent = now;
  machine.taint_wanted = present;
  ++machine.taint_attempts;
  WakeAt(now + PauseAfter(machine.taint_attempts, kWriteRetry, kWriteRetryMax));
  return true;
}

void StepContext::Delete(MachineView& view) {
  Machine& machine = *view.machine;
  if (machine.delete_sent.has_value()) {
    const absl::Time due =
        *machine.delete_sent + PauseAfter(machine.delete_attempts, kWriteRetry, kWriteRetryMax);
    if (now < due) return WakeAt(due);
  }
  machine.delete_sent = now;
  ++machine.delete_attempts;
  Do(model::DeleteNodeRequest{machine.name(), machine.desired.meta.uid,
                              machine.desired.finalizers});
  WakeAt(now + PauseAfter(machine.delete_attempts, kWriteRetry, kWriteRetryMax));
}

void StepContext::WriteStatus(MachineView& view) {
  Machine& machine = *view.machine;
  if (SameStatus(machine.desired, *machine.observed)) {
    machine.written.reset();
    return;
  }
  int64_t refusals = 0;
  if (machine.written.has_value()) {
    const StatusWrite& last = *machine.written;
    const bool same = SameStatus(last.status, machine.desired);
    // The server may have cut or dropped what is for people alone.
    if (same && last.accepted && SameDecision(*machine.observed, machine.desired)) return;
    absl::Time due = last.sent_at + (last.accepted ? kRewrite : kWriteRetry);
    if (!same && !last.retry_at.has_value()) due = now;
    if (last.retry_at.has_value()) due = *last.retry_at;
    if (now < due) return WakeAt(due);
    refusals = last.refusals;
  }
  machine.written = StatusWrite{machine.desired, now, false, refusals, std::nullopt};
  out.actions.push_back({0, model::UpdateNodeRequestStatus{machine.desired}});
  WakeAt(now + kWriteRetry);
}

LaunchKey KeyOf(const model::NodeRequest& request) {
  return {request.provider, request.pool, request.instance_type, request.zone, request.spot};
}

}  // namespace fairlead::hook
