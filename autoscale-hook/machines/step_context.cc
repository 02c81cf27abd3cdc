#include "autoscale-hook/machines/step_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/node_lists.h"
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

std::map<std::string, const NodeUse*> MachineView::ToEnd() const {
  std::map<std::string, const NodeUse*> machines;
  for (const NodeUse* node : nodes) {
    if (!node->registered) continue;
    machines[node->provider_id.empty() ? request().provider_id : node->provider_id] = node;
  }
  for (const std::string& id : machine->provider_ids) machines.try_emplace(id, nullptr);
  for (const NodeUse* node : surplus) machines.erase(node->provider_id);
  if (machines.empty()) machines[""] = nullptr;
  return machines;
}

bool MachineView::Ended() const {
  const auto machines = ToEnd();
  return std::all_of(machines.begin(), machines.end(), [&](const auto& one) {
    const auto end = machine->ends.find(one.first);
    return end != machine->ends.end() && end->second.confirmed;
  });
}

int64_t MachineView::CountMachines() const {
  // A node that does not tell its id is one of those whose id an answer told.
  int64_t registered = 0;
  std::set<std::string> ids = machine->provider_ids;
  for (const auto* part : {&nodes, &surplus}) {
    for (const NodeUse* node : *part) {
      registered += node->registered ? 1 : 0;
      if (node->registered && !node->provider_id.empty()) ids.insert(node->provider_id);
    }
  }
  return std::max({int64_t{1}, registered, static_cast<int64_t>(ids.size())});
}

MachineView& StepContext::ViewOf(const Machine& machine) {
  const auto place = std::lower_bound(
      views.begin(), views.end(), machine.name(),
      [](const MachineView& view, const std::string& name) { return view.machine->name() < name; });
  if (place != views.end() && place->machine == &machine) return *place;
  return *views.insert(place, MachineView{&ledger.Edit(machine), nodes.Of(machine), {}});
}

bool StepContext::TerminateOne(Machine& machine, const std::string& provider_id,
                               const NodeUse* node) {
  if (node == nullptr && machine.launch.in_flight() && now < machine.launch.due()) {
    // It might reach the provider after the end, and launch a machine that nothing knows of.
    WakeAt(machine.launch.due());
    return false;
  }
  MachineEnd& end = machine.ends[provider_id];
  // Confirmed, and its node is there: usually its deletion has not been seen yet. If it stays, the
  // machine lives, or the object was left behind: then the provider is asked again.
  if (end.confirmed && node == nullptr) return false;
  if (!end.attempts.MayGo(now)) {
    WakeAt(end.attempts.due());
    return false;
  }
  if (node == nullptr && now >= machine.absence.valid_until) {
    unproved.push_back(&machine);
    return false;
  }
  NodeLists::StopWaiting(machine);
  if (end.attempts.in_flight()) {
    machine.desired.message = absl::StrCat(
        "the provider has not answered TerminateNode, attempts: ", end.attempts.failures() + 1);
  }
  end.confirmed = false;
  end.attempts.Sent(now, kTerminateRules);
  const bool is_main = provider_id == machine.desired.provider_id;
  const std::string& known_name = is_main ? machine.desired.node_name : std::string();
  Do(model::TerminateNode{machine.name(), machine.desired.provider,
                          node != nullptr ? node->name : known_name, provider_id});
  out.ends.push_back({machine.name(), machine.uid(), provider_id});
  WakeAt(end.attempts.due());
  return true;
}

void StepContext::Terminate(MachineView& view) {
  for (const auto& [id, node] : view.ToEnd()) TerminateOne(*view.machine, id, node);
}

bool StepContext::TaintOne(Machine& machine, const NodeUse& node, bool present) {
  Machine::NodeTaint& taint = machine.taints[node.uid];
  if (taint.wanted != present) taint.attempts.Settle();
  taint.wanted = present;
  if (!node.registered || node.removal_tainted == present) {
    taint.attempts.Settle();  // seen; pods bound before it are awaited
    return false;
  }
  if (!taint.attempts.MayGo(now)) {
    WakeAt(taint.attempts.due());
    return false;
  }
  taint.attempts.Sent(now, kWriteRules);
  ledger.TaintSent(machine, node.uid);
  Do(model::SetNodeTaint{
      node.name, node.uid, {model::kRemovalTaint, "", model::TaintEffect::kNoSchedule}, present});
  WakeAt(taint.attempts.due());
  return true;
}

bool StepContext::Taint(MachineView& view, bool present) {
  bool sent = false;
  for (const NodeUse* node : view.nodes) {
    if (node->registered && TaintOne(*view.machine, *node, present)) sent = true;
  }
  return sent;
}

void StepContext::NoteWitness(const MachineView& view) const {
  model::NodeRequest& request = view.request();
  // An older CRD may not know the value. It must not keep the machine.
  Machine& machine = *view.machine;
  if (machine.written.has_value() && machine.written->attempts.failures() > 0 &&
      !machine.written->attempts.in_flight() &&
      machine.written->status.failure == ProvisioningGuard::kUnhelpful) {
    machine.witness_refused = true;
  }
  if (machine.witness_refused) {
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
  return {request.provider, request.pool, request.instance_type,
          request.zone,     request.spot, request.reservation};
}

}  // namespace fairlead::hook
