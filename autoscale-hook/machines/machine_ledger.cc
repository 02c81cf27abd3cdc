#include "autoscale-hook/machines/machine_ledger.h"

#include <utility>

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;

bool SameSecond(const std::optional<absl::Time>& a, const std::optional<absl::Time>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a.has_value() || absl::ToUnixSeconds(*a) == absl::ToUnixSeconds(*b);
}

void TakeStatus(const model::NodeRequest& from, model::NodeRequest& to) {
  model::ObjectMeta meta = to.meta;
  std::vector<std::string> finalizers = to.finalizers;
  to = from;
  to.meta = std::move(meta);
  to.finalizers = std::move(finalizers);
}

// Phases that must be written before an action that cannot be undone.
bool IsEnding(Phase phase) {
  return phase == Phase::kFailed || phase == Phase::kDraining || phase == Phase::kGone;
}

}  // namespace

bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b) {
  return a.phase == b.phase && a.node_name == b.node_name && a.provider_id == b.provider_id &&
         a.message == b.message && a.failure == b.failure && a.allocatable == b.allocatable &&
         SameSecond(a.launched_at, b.launched_at) && SameSecond(a.registered_at, b.registered_at) &&
         SameSecond(a.ready_at, b.ready_at) && SameSecond(a.unneeded_since, b.unneeded_since) &&
         SameSecond(a.failed_at, b.failed_at);
}

bool Machine::Written(Phase phase) const {
  if (observed.has_value() && observed->phase == phase) return true;
  return written.has_value() && written->attempts.accepted() && written->status.phase == phase;
}

bool Machine::Promises() const {
  return !IsEnding(desired.phase) && !desired.meta.deletion.has_value();
}

bool MachineLedger::Observe(const model::NodeRequest& request) {
  ++version_;
  auto [it, added] = rows_.try_emplace(request.meta.name);
  Machine& machine = it->second;
  const bool another = !added && machine.seen() && machine.observed->meta.uid != request.meta.uid;
  if (added || another || !machine.seen()) {
    if (another) {
      by_provider_id_.erase(machine.desired.provider_id);
      machine = Machine();
    }
    machine.first_seen = absl::InfinitePast();  // the next step sets it
    machine.desired = request;
    machine.observed = request;
    Index(machine);
    return true;
  }
  const bool was_settled =
      !machine.written.has_value() && SameStatus(*machine.observed, machine.desired);
  bool news = request.meta.deletion.has_value() && !machine.desired.meta.deletion.has_value();
  news = news || (IsEnding(machine.desired.phase) && request.phase != machine.observed->phase);
  machine.desired.meta = request.meta;
  machine.desired.finalizers = request.finalizers;
  if (was_settled && !SameStatus(request, machine.desired)) {
    TakeStatus(request, machine.desired);
    Index(machine);
    news = true;
  }
  machine.observed = request;
  const bool shown = machine.written.has_value() && SameStatus(request, machine.written->status);
  if (shown || SameStatus(request, machine.desired)) machine.written.reset();
  return news;
}

bool MachineLedger::ObserveGone(const std::string& name, const std::string& uid) {
  auto it = rows_.find(name);
  // An unseen request is not the one that was deleted.
  if (it == rows_.end() || !it->second.seen() || it->second.observed->meta.uid != uid) {
    return false;
  }
  Drop(it);
  return true;
}

void MachineLedger::CreationSent(const model::NodeRequest& request, absl::Time now) {
  auto [it, added] = rows_.try_emplace(request.meta.name);
  Machine& machine = it->second;
  if (added) {
    machine.desired = request;
    machine.desired.meta.creation = now;
    machine.created_here = true;
  }
  machine.creation.Sent(now, kCreationRules);
  ++version_;
}

bool MachineLedger::CreationAnswered(const std::string& name, const absl::Status& status,
                                     absl::Time now) {
  Machine* machine = FindMutable(name);
  if (machine == nullptr || machine->seen()) return false;
  WriteAttempts& creation = machine->creation;
  const Outcome alone = OutcomeOf(absl::IsAlreadyExists(status) ? absl::OkStatus() : status,
                                  /*in_doubt=*/false);
  ++version_;
  return creation.Answered(alone, now, kCreationRules, /*fresh=*/true) == Outcome::kRefused;
}

void MachineLedger::Forget(const std::string& name) {
  auto it = rows_.find(name);
  if (it != rows_.end() && !it->second.seen()) Drop(it);
}

bool MachineLedger::StatusAnswered(const model::NodeRequest& written, const absl::Status& status,
                                   absl::Time now) {
  Machine* machine = FindMutable(written.meta.name);
  if (machine == nullptr || machine->desired.meta.uid != written.meta.uid ||
      !machine->written.has_value() || !SameStatus(machine->written->status, written)) {
    return false;  // a later write followed it
  }
  const Outcome outcome = machine->written->attempts.Answered(status, now, kWriteRules);
  ++version_;
  return IsEnding(written.phase) || outcome != Outcome::kDone;
}

void MachineLedger::TaintAnswered(const std::string& name, bool present, const absl::Status& status,
                                  absl::Time now) {
  Machine* machine = FindMutable(name);
  if (machine == nullptr || machine->taint_wanted != present) return;
  machine->taint.Answered(status, now, kWriteRules);
  ++version_;
}

void MachineLedger::DeletionAnswered(const std::string& name, const std::string& uid,
                                     const absl::Status& status, absl::Time now) {
  Machine* machine = FindMutable(name);
  if (machine == nullptr || machine->desired.meta.uid != uid) return;
  machine->deletion.Answered(status, now, kWriteRules);
  ++version_;
}

const Machine* MachineLedger::Find(const std::string& name) const {
  auto it = rows_.find(name);
  return it == rows_.end() ? nullptr : &it->second;
}

Machine* MachineLedger::FindMutable(const std::string& name) {
  auto it = rows_.find(name);
  return it == rows_.end() ? nullptr : &it->second;
}

bool MachineLedger::Seen(const std::string& name) const {
  const Machine* machine = Find(name);
  return machine != nullptr && machine->seen();
}

std::string MachineLedger::FindByProviderId(const std::string& provider_id) const {
  auto it = by_provider_id_.find(provider_id);
  return it == by_provider_id_.end() ? "" : it->second;
}

void MachineLedger::SetProviderId(Machine& machine, const std::string& provider_id) {
  if (provider_id.empty() || machine.desired.provider_id == provider_id) return;
  by_provider_id_.erase(machine.desired.provider_id);
  machine.desired.provider_id = provider_id;
  Index(machine);
  ++version_;
}

void MachineLedger::Index(const Machine& machine) {
  const std::string& id = machine.desired.provider_id;
  if (!id.empty()) by_provider_id_[id] = machine.name();
}

void MachineLedger::Drop(std::map<std::string, Machine>::iterator row) {
  auto by_id = by_provider_id_.find(row->second.desired.provider_id);
  if (by_id != by_provider_id_.end() && by_id->second == row->first) by_provider_id_.erase(by_id);
  rows_.erase(row);
  ++version_;
}

}  // namespace fairlead::hook
