#include "autoscale-hook/machines/step_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/provisioning/provisioning_guard.h"
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
  WriteAttempts& terminate = machine.terminate;
  if (machine.gone) return;
  if (!terminate.MayGo(now)) return WakeAt(terminate.due());
  if (terminate.in_flight()) {
    view.request().message = absl::StrCat("the provider has not answered TerminateNode, attempts: ",
                                          terminate.failures() + 1);
  }
  terminate.Sent(now, kTerminateRules);
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
  WakeAt(terminate.due());
}

bool StepContext::Taint(MachineView& view, bool present) {
  Machine& machine = *view.machine;
  if (machine.taint_wanted != present) machine.taint.Settle();
  machine.taint_wanted = present;
  const auto differs = [present](const NodeUse* node) {
    return node->registered && node->removal_tainted != present;
  };
  if (std::none_of(view.nodes.begin(), view.nodes.end(), differs)) {
    machine.taint.Settle();  // seen on all nodes; pods bound before it are awaited
    return false;
  }
  if (!machine.taint.MayGo(now)) {
    WakeAt(machine.taint.due());
    return false;
  }
  for (const NodeUse* node : view.nodes) {
    if (!differs(node)) continue;
    Do(model::SetNodeTaint{node->name,
                           node->uid,
                           {model::kRemovalTaint, "", model::TaintEffect::kNoSchedule},
                           present});
  }
  machine.taint.Sent(now, kWriteRules);
  WakeAt(machine.taint.due());
  return true;
}

void StepContext::NoteWitness(const MachineView& view) const {
  model::NodeRequest& request = view.request();
  // An older CRD may not know the value. It must not keep the machine.
  if (view.machine->written.has_value() && view.machine->written->attempts.failures() > 0) {
    if (request.failure != ProvisioningGuard::kUnhelpful) return;
    request.failure.clear();
    request.failed_at.reset();
    return;
  }
  if (!request.failure.empty() || !witnesses.contains(request.meta.name)) return;
  request.failure = ProvisioningGuard::kUnhelpful;
  request.failed_at = now;
}

void StepContext::Delete(MachineView& view) {
  Machine& machine = *view.machine;
  if (machine.deletion.MayGo(now)) {
    machine.deletion.Sent(now, kWriteRules);
    Do(model::DeleteNodeRequest{machine.name(), machine.desired.meta.uid,
                                machine.desired.finalizers});
  }
  WakeAt(machine.deletion.due());
}

void StepContext::WriteStatus(MachineView& view) {
  Machine& machine = *view.machine;
  if (SameStatus(machine.desired, *machine.observed)) {
    machine.written.reset();
    return;
  }
  WriteAttempts attempts;
  if (machine.written.has_value()) {
    attempts = machine.written->attempts;
    const bool same = SameStatus(machine.written->status, machine.desired);
    // The server may have cut or dropped what is for people alone.
    if (same && attempts.accepted() && SameDecision(*machine.observed, machine.desired)) return;
    // Another status follows at once, but a refusal holds it back too.
    if (!same && (attempts.in_flight() || attempts.accepted())) attempts.Settle();
    if (!attempts.MayGo(now)) return WakeAt(attempts.due());
  }
  attempts.Sent(now, kWriteRules);
  machine.written = StatusWrite{machine.desired, attempts};
  out.actions.push_back({0, model::UpdateNodeRequestStatus{machine.desired}});
  WakeAt(attempts.due());
}

LaunchKey KeyOf(const model::NodeRequest& request) {
  return {request.provider, request.pool, request.instance_type, request.zone, request.spot};
}

}  // namespace fairlead::hook
