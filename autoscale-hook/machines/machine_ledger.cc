#include "autoscale-hook/machines/machine_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

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

// The key of a row whose object is not seen yet. No uid has a slash.
std::string KeyOfName(const std::string& name) { return absl::StrCat("name/", name); }
std::string KeyOf(const std::string& name, const std::string& uid) {
  return uid.empty() ? KeyOfName(name) : uid;
}

// True if a machine may exist although the object is gone.
bool MayHaveMachine(const Machine& machine) {
  const Phase phase = machine.desired.phase;
  if (phase == Phase::kGone) return false;
  if (machine.first_seen == absl::InfinitePast()) return !IsEnding(phase);
  const bool ended =
      !machine.ends.empty() && std::all_of(machine.ends.begin(), machine.ends.end(),
                                           [](const auto& end) { return end.second.confirmed; });
  const bool all_told =
      std::all_of(machine.provider_ids.begin(), machine.provider_ids.end(),
                  [&](const std::string& id) { return machine.ends.contains(id); });
  return !ended || !all_told;
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

void Machine::IsThere(const std::string& provider_id) {
  reported_gone = false;
  if (const auto end = ends.find(provider_id); end != ends.end()) end->second.confirmed = false;
}

bool Machine::EndStarted() const {
  return std::any_of(ends.begin(), ends.end(),
                     [](const auto& end) { return end.second.attempts.started(); });
}

bool MachineLedger::Observe(const model::NodeRequest& request) {
  ++version_;
  const std::string& name = request.meta.name;
  const std::string key = KeyOf(name, request.meta.uid);
  auto row = rows_.find(key);
  if (auto current = current_.find(name); current != current_.end() && current->second != key) {
    auto former = rows_.find(current->second);
    if (!former->second.seen() && row == rows_.end()) {
      // The object of our creation: from now on it has a uid.
      auto node = rows_.extract(former);
      node.key() = key;
      row = rows_.insert(std::move(node)).position;
    } else if (!former->second.seen()) {
      rows_.erase(former);
    } else {
      Lose(former);
    }
  }
  const bool added = row == rows_.end();
  if (added) row = rows_.try_emplace(key).first;
  Machine& machine = row->second;
  machine.key = key;
  current_[name] = key;
  if (std::exchange(machine.lost, false)) {
    lost_[name].erase(key);
    if (lost_[name].empty()) lost_.erase(name);
  }
  if (added || !machine.seen()) {
    machine.first_seen = absl::InfinitePast();  // the next step sets it
    machine.desired = request;
    machine.observed = request;
    AddProviderId(machine, machine.desired.provider_id);
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
    AddProviderId(machine, machine.desired.provider_id);
    news = true;
  }
  machine.observed = request;
  const bool shown = machine.written.has_value() && SameStatus(request, machine.written->status);
  if (shown || SameStatus(request, machine.desired)) machine.written.reset();
  return news;
}

bool MachineLedger::ObserveGone(const std::string& name, const std::string& uid,
                                bool keep_machine) {
  auto row = rows_.find(KeyOf(name, uid));
  // An unseen request is not the one that was deleted.
  if (row == rows_.end() || !row->second.seen()) return false;
  if (keep_machine) {
    Lose(row);
  } else {
    Drop(row);
  }
  return true;
}

void MachineLedger::Lose(Rows::iterator row) {
  Machine& machine = row->second;
  if (!MayHaveMachine(machine)) return Drop(row);
  if (auto current = current_.find(machine.name());
      current != current_.end() && current->second == row->first) {
    current_.erase(current);
  }
  lost_[machine.name()].insert(row->first);
  machine.lost = true;
  machine.observed.reset();
  machine.written.reset();
  machine.deletion.Settle();
  machine.missing_since.reset();
  ++version_;
}

void MachineLedger::CreationSent(const model::NodeRequest& request, absl::Time now) {
  const std::string key = KeyOfName(request.meta.name);
  auto [it, added] = rows_.try_emplace(key);
  Machine& machine = it->second;
  if (added) {
    machine.key = current_[request.meta.name] = key;
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
  auto current = current_.find(name);
  if (current == current_.end()) return;
  auto row = rows_.find(current->second);
  if (!row->second.seen()) Drop(row);
}

bool MachineLedger::StatusAnswered(const model::NodeRequest& written, const absl::Status& status,
                                   absl::Time now) {
  Machine* machine = FindObject(written.meta.name, written.meta.uid);
  if (machine == nullptr || !machine->written.has_value() ||
      !SameStatus(machine->written->status, written)) {
    return false;  // a later write followed it
  }
  const Outcome outcome = machine->written->attempts.Answered(status, now, kWriteRules);
  ++version_;
  return IsEnding(written.phase) || outcome != Outcome::kDone;
}

void MachineLedger::TaintAnswered(const std::string& node_uid, bool present,
                                  const absl::Status& status, absl::Time now) {
  const auto node = by_node_.find(node_uid);
  if (node == by_node_.end()) return;
  auto row = rows_.find(node->second);
  const auto taint = row->second.taints.find(node_uid);
  if (taint == row->second.taints.end() || taint->second.wanted != present) return;
  taint->second.attempts.Answered(status, now, kWriteRules);
  ++version_;
}

void MachineLedger::DeletionAnswered(const std::string& name, const std::string& uid,
                                     const absl::Status& status, absl::Time now) {
  Machine* machine = FindObject(name, uid);
  if (machine == nullptr) return;
  machine->deletion.Answered(status, now, kWriteRules);
  ++version_;
}

const Machine* MachineLedger::Find(const std::string& name) const {
  auto it = current_.find(name);
  return it == current_.end() ? nullptr : &rows_.at(it->second);
}

Machine* MachineLedger::FindMutable(const std::string& name) {
  auto it = current_.find(name);
  return it == current_.end() ? nullptr : &rows_.at(it->second);
}

Machine* MachineLedger::FindObject(const std::string& name, const std::string& uid) {
  auto it = rows_.find(KeyOf(name, uid));
  return it == rows_.end() ? nullptr : &it->second;
}

Machine* MachineLedger::FindReported(const std::string& name, const std::string& uid,
                                     const std::string& provider_id) {
  const auto by_uid = uid.empty() ? rows_.end() : rows_.find(uid);
  if (by_uid != rows_.end() && by_uid->second.name() == name) return &by_uid->second;
  const auto by_id = by_provider_id_.find(provider_id);
  return by_id == by_provider_id_.end() ? nullptr : &rows_.at(by_id->second);
}

const Machine* MachineLedger::FindByNode(const std::string& request_name,
                                         const std::string& provider_id) const {
  if (auto it = by_provider_id_.find(provider_id); it != by_provider_id_.end()) {
    return &rows_.at(it->second);
  }
  auto lost = lost_.find(request_name);
  return lost == lost_.end() ? Find(request_name) : &rows_.at(*lost->second.begin());
}

bool MachineLedger::HasLost(const std::string& name) const { return lost_.contains(name); }

bool MachineLedger::IsFree(const std::string& name) const {
  return !current_.contains(name) && !lost_.contains(name) && !ended_.contains(name);
}

std::string MachineLedger::FindByProviderId(const std::string& provider_id) const {
  auto it = by_provider_id_.find(provider_id);
  return it == by_provider_id_.end() ? "" : rows_.at(it->second).name();
}

std::set<std::string> MachineLedger::ProviderIdsOf(const std::string& name) const {
  std::set<std::string> ids;
  if (const Machine* current = Find(name)) ids = current->provider_ids;
  if (auto lost = lost_.find(name); lost != lost_.end()) {
    for (const std::string& key : lost->second) {
      const std::set<std::string>& more = rows_.at(key).provider_ids;
      ids.insert(more.begin(), more.end());
    }
  }
  return ids;
}

void MachineLedger::AddProviderId(Machine& machine, const std::string& provider_id) {
  if (provider_id.empty()) return;
  // An id leads to one row: the first that told it. Of a lost row the current one takes it over.
  auto [known, added] = by_provider_id_.try_emplace(provider_id, machine.key);
  if (!added && known->second != machine.key) {
    Machine& other = rows_.at(known->second);
    if (!other.lost) return;
    other.provider_ids.erase(provider_id);
    other.taken_over = other.provider_ids.empty();
    known->second = machine.key;
  }
  if (!machine.provider_ids.insert(provider_id).second) return;
  machine.absence.valid_until = absl::InfinitePast();  // nodes were not searched for this id
  ++version_;
}

void MachineLedger::SetProviderId(Machine& machine, const std::string& provider_id) {
  AddProviderId(machine, provider_id);
  if (provider_id.empty() || machine.desired.provider_id == provider_id) return;
  machine.desired.provider_id = provider_id;
  ++version_;
}

void MachineLedger::RemoveProviderId(Machine& machine, const std::string& provider_id) {
  auto known = by_provider_id_.find(provider_id);
  if (known != by_provider_id_.end() && known->second == machine.key) by_provider_id_.erase(known);
  machine.provider_ids.erase(provider_id);
  machine.ends.erase(provider_id);
  machine.surplus_since.erase(provider_id);
  ++version_;
}

void MachineLedger::HandOver(Machine& lost, Machine& current) {
  const std::string main = lost.desired.provider_id;
  for (const std::string& id : std::set<std::string>(lost.provider_ids)) {
    by_provider_id_.erase(id);
    AddProviderId(current, id);
  }
  if (current.desired.provider_id.empty()) SetProviderId(current, main);
  Drop(rows_.find(lost.key));
}

void MachineLedger::AddLost(const model::NodeRequest& request, absl::Time now) {
  const auto [row, added] = rows_.try_emplace(KeyOf(request.meta.name, request.meta.uid));
  if (!added) return;
  Machine& machine = row->second;
  machine.key = row->first;
  machine.desired = request;
  machine.first_seen = now;
  machine.lost = true;
  lost_[machine.name()].insert(row->first);
  AddProviderId(machine, request.provider_id);
  ++version_;
}

void MachineLedger::DropLost(const std::string& key) {
  auto row = rows_.find(key);
  if (row != rows_.end() && row->second.lost) Drop(row);
}

void MachineLedger::TakeLost(MachineLedger& former) {
  for (auto& [key, machine] : former.rows_) {
    if (!machine.lost || rows_.contains(key)) continue;
    machine.taints.clear();
    machine.absence = {};
    lost_[machine.name()].insert(key);
    for (const std::string& id : machine.provider_ids) by_provider_id_.try_emplace(id, key);
    rows_.emplace(key, machine);
  }
  ++version_;
}

void MachineLedger::TaintSent(const Machine& machine, const std::string& node_uid) {
  by_node_[node_uid] = machine.key;
}

void MachineLedger::KeepTaints(Machine& machine, const std::set<std::string>& node_uids) {
  for (auto taint = machine.taints.begin(); taint != machine.taints.end();) {
    if (node_uids.contains(taint->first)) {
      ++taint;
      continue;
    }
    by_node_.erase(taint->first);
    taint = machine.taints.erase(taint);
  }
}

void MachineLedger::Drop(Rows::iterator row) {
  const Machine& machine = row->second;
  if (machine.seen() && ended_.insert(machine.name()).second) {
    ended_order_.push_back(machine.name());
    if (ended_order_.size() > kEndedNames) {
      ended_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  for (const std::string& id : machine.provider_ids) {
    auto known = by_provider_id_.find(id);
    if (known != by_provider_id_.end() && known->second == row->first) by_provider_id_.erase(known);
  }
  for (const auto& [uid, taint] : machine.taints) by_node_.erase(uid);
  if (auto current = current_.find(machine.name());
      current != current_.end() && current->second == row->first) {
    current_.erase(current);
  }
  if (auto lost = lost_.find(machine.name()); lost != lost_.end()) {
    lost->second.erase(row->first);
    if (lost->second.empty()) lost_.erase(lost);
  }
  rows_.erase(row);
  ++version_;
}

}  // namespace fairlead::hook
