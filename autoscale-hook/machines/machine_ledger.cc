#include "autoscale-hook/machines/machine_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
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
  if (auto current = current_.find(name);
      current != current_.end() && current->second->key != key) {
    auto former = rows_.find(current->second->key);
    if (!former->second.seen() && row == rows_.end()) {
      // The object of our creation: from now on it has a uid.
      auto node = rows_.extract(former);
      node.key() = key;
      row = rows_.insert(std::move(node)).position;
    } else if (!former->second.seen()) {
      Drop(former);
    } else {
      Lose(former);
    }
  }
  const bool added = row == rows_.end();
  if (added) row = AddRow(key);
  Machine& machine = row->second;
  machine.key = key;
  current_[name] = &machine;
  if (std::exchange(machine.lost, false)) {
    lost_[name].erase(key);
    if (lost_[name].empty()) lost_.erase(name);
  }
  if (added || !machine.seen()) {
    machine.first_seen = absl::InfinitePast();  // the next step sets it
    machine.desired = request;
    machine.observed = request;
    unsteady_[name] = &machine;
    AddProviderId(machine, machine.desired.provider_id);
    return true;
  }
  Wake(machine);
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
  Unsee(machine);
  Retire(machine);
  AddToLost(machine);
  machine.lost = true;
  machine.observed.reset();
  machine.written.reset();
  machine.deletion.Settle();
  machine.missing_since.reset();
  ++version_;
}

void MachineLedger::CreationSent(const model::NodeRequest& request, absl::Time now) {
  auto row = rows_.find(KeyOfName(request.meta.name));
  if (row == rows_.end()) {
    row = AddRow(KeyOfName(request.meta.name));
    current_[request.meta.name] = &row->second;
    row->second.desired = request;
    row->second.desired.meta.creation = now;
    row->second.created_here = true;
  }
  Wake(row->second);
  row->second.creation.Sent(now, kCreationRules);
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
  if (!current->second->seen()) Drop(rows_.find(current->second->key));
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
  Wake(row->second);
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
  return it == current_.end() ? nullptr : it->second;
}

const Machine* MachineLedger::FindByNode(const std::string& request_name,
                                         const std::string& provider_id) const {
  if (auto it = by_provider_id_.find(provider_id); it != by_provider_id_.end()) return it->second;
  const auto lost = lost_.find(request_name);
  return lost == lost_.end() ? Find(request_name) : &rows_.at(*lost->second.begin());
}

void MachineLedger::ForEachUnsteady(absl::FunctionRef<void(const Machine&)> use) const {
  for (const auto& [name, machine] : unsteady_) use(*machine);
}

std::vector<const Machine*> MachineLedger::Lost() const {
  std::set<std::string> keys;
  for (const auto& [name, of_name] : lost_) keys.insert(of_name.begin(), of_name.end());
  std::vector<const Machine*> lost;
  for (const std::string& key : keys) lost.push_back(&rows_.at(key));
  return lost;
}

std::vector<const Machine*> MachineLedger::Unseen() const {
  std::vector<const Machine*> unseen;
  for (auto row = rows_.lower_bound(KeyOfName(""));
       row != rows_.end() && absl::StartsWith(row->first, KeyOfName("")); ++row) {
    if (!row->second.seen() && !row->second.lost) unseen.push_back(&row->second);
  }
  return unseen;
}

std::optional<std::vector<std::string>> MachineLedger::TakeGone() {
  return std::exchange(gone_, std::vector<std::string>());
}

Machine& MachineLedger::Edit(const Machine& row) {
  Machine& machine = rows_.at(row.key);
  Wake(machine);
  return machine;
}

Machine* MachineLedger::FindMutable(const std::string& name) {
  auto it = current_.find(name);
  if (it == current_.end()) return nullptr;
  Wake(*it->second);
  return it->second;
}

Machine* MachineLedger::FindObject(const std::string& name, const std::string& uid) {
  auto it = rows_.find(KeyOf(name, uid));
  if (it == rows_.end()) return nullptr;
  Wake(it->second);
  return &it->second;
}

Machine* MachineLedger::FindReported(const std::string& name, const std::string& uid,
                                     const std::string& provider_id) {
  const auto by_uid = uid.empty() ? rows_.end() : rows_.find(uid);
  Machine* machine = nullptr;
  if (by_uid != rows_.end() && by_uid->second.name() == name) {
    machine = &by_uid->second;
  } else if (const auto by_id = by_provider_id_.find(provider_id); by_id != by_provider_id_.end()) {
    machine = by_id->second;
  }
  if (machine != nullptr) Wake(*machine);
  return machine;
}

void MachineLedger::MakeSteady(Machine& machine, const SteadyKind& kind, uint64_t node_version,
                               std::optional<absl::Time> due) {
  if (steady_.Add(machine, kind, node_version, due)) unsteady_.erase(machine.name());
}

void MachineLedger::EndWaits(absl::Time until) {
  for (Machine* machine : steady_.Due(until)) Wake(*machine);
}

void MachineLedger::EndPass() {
  for (Machine* machine : steady_.NotPassed()) Wake(*machine);
}

void MachineLedger::Wake(Machine& machine) {
  if (machine.steady_version == 0) return;
  steady_.Remove(machine);
  unsteady_[machine.name()] = &machine;
}

void MachineLedger::Unsee(Machine& machine) {
  Wake(machine);
  const auto unsteady = unsteady_.find(machine.name());
  if (unsteady != unsteady_.end() && unsteady->second == &machine) unsteady_.erase(unsteady);
}

bool MachineLedger::HasLost(const std::string& name) const { return lost_.contains(name); }

bool MachineLedger::IsFree(const std::string& name) const {
  return !current_.contains(name) && !lost_.contains(name) && !ended_.contains(name);
}

std::string MachineLedger::FindByProviderId(const std::string& provider_id) const {
  auto it = by_provider_id_.find(provider_id);
  return it == by_provider_id_.end() ? "" : it->second->name();
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

bool MachineLedger::HasProviderId(const Machine& machine, const std::string& provider_id) const {
  const auto known = by_provider_id_.find(provider_id);
  return known != by_provider_id_.end() && known->second == &machine;
}

void MachineLedger::AddProviderId(Machine& machine, const std::string& provider_id) {
  if (provider_id.empty()) return;
  // An id leads to one row: the first that told it. Of a lost row the current one takes it over.
  auto [known, added] = by_provider_id_.try_emplace(provider_id, &machine);
  if (!added && known->second != &machine) {
    Machine& other = *known->second;
    if (!other.lost) return;
    other.provider_ids.erase(provider_id);
    other.taken_over = other.provider_ids.empty();
    known->second = &machine;
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
  if (known != by_provider_id_.end() && known->second == &machine) by_provider_id_.erase(known);
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
  const std::string key = KeyOf(request.meta.name, request.meta.uid);
  if (rows_.contains(key)) return;
  Machine& machine = AddRow(key)->second;
  machine.desired = request;
  machine.first_seen = now;
  machine.lost = true;
  AddToLost(machine);
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
    Machine& taken = AddRow(key)->second;
    const uint64_t number = taken.number;
    taken = machine;
    taken.number = number;
    taken.taints.clear();
    taken.absence = {};
    AddToLost(taken);
    for (const std::string& id : taken.provider_ids) by_provider_id_.try_emplace(id, &taken);
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

MachineLedger::Rows::iterator MachineLedger::AddRow(const std::string& key) {
  const auto row = rows_.try_emplace(key).first;
  row->second.key = key;
  row->second.number = ++last_number_;
  return row;
}

void MachineLedger::Retire(const Machine& machine) {
  const auto current = current_.find(machine.name());
  if (current == current_.end() || current->second != &machine) return;
  current_.erase(current);
  if (!gone_.has_value()) return;
  gone_->push_back(machine.name());
  if (gone_->size() > kEndedNames) gone_.reset();
}

void MachineLedger::AddToLost(const Machine& machine) {
  lost_[machine.name()].insert(machine.key);
  // A node without a providerID belongs to the lost row from now on.
  if (auto current = current_.find(machine.name()); current != current_.end()) {
    Wake(*current->second);
  }
}

void MachineLedger::Drop(Rows::iterator row) {
  Machine& machine = row->second;
  if (machine.seen() && ended_.insert(machine.name()).second) {
    ended_order_.push_back(machine.name());
    if (ended_order_.size() > kEndedNames) {
      ended_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  for (const std::string& id : machine.provider_ids) {
    auto known = by_provider_id_.find(id);
    if (known != by_provider_id_.end() && known->second == &machine) by_provider_id_.erase(known);
  }
  for (const auto& [uid, taint] : machine.taints) by_node_.erase(uid);
  Retire(machine);
  if (auto lost = lost_.find(machine.name()); lost != lost_.end()) {
    lost->second.erase(row->first);
    if (lost->second.empty()) lost_.erase(lost);
  }
  Unsee(machine);
  rows_.erase(row);
  ++version_;
}

}  // namespace fairlead::hook
