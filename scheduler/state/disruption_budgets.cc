#include "scheduler/state/disruption_budgets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

bool Selects(const model::PodDisruptionBudget& budget, const model::StringMap& labels) {
  return !budget.invalid.empty() || budget.selector.Matches(labels);
}

bool SameForDecisions(const model::PodDisruptionBudget& a, const model::PodDisruptionBudget& b) {
  return a.selector == b.selector && a.invalid == b.invalid && a.Allowed() == b.Allowed() &&
         a.current_healthy == b.current_healthy && a.desired_healthy == b.desired_healthy &&
         a.always_allow == b.always_allow && a.disrupted_pods == b.disrupted_pods;
}

}  // namespace

const DisruptionBudgets::Row& DisruptionBudgets::RowOf(BudgetId id) const {
  const auto key = keys_.find(id);
  FAIRLEAD_CHECK(key != keys_.end(), absl::StrCat("no budget ", id));
  return rows_.at(key->second);
}

DisruptionBudgets::Row* DisruptionBudgets::FindRow(BudgetId id) {
  const auto key = keys_.find(id);
  return key == keys_.end() ? nullptr : &rows_.at(key->second);
}

bool DisruptionBudgets::Upsert(const model::PodDisruptionBudget& budget) {
  const Key key(budget.meta.ns, budget.meta.name);
  const auto known = rows_.find(key);
  if (known != rows_.end() && known->second.budget.meta.uid != budget.meta.uid) {
    Remove(budget.meta.ns, budget.meta.name, "");
  }
  auto [it, added] = rows_.try_emplace(key);
  Row& row = it->second;
  if (added) {
    row.id = next_id_++;
    keys_[row.id] = key;
  }
  const bool changed = added || !SameForDecisions(row.budget, budget);
  row.budget = budget;
  if (!changed) return false;
  ++row.version;
  Reconcile(row);
  Tell(row.id);
  return true;
}

void DisruptionBudgets::Reconcile(Row& row) {
  if (row.charged == 0) return;
  const std::vector<std::string>& shown = row.budget.disrupted_pods;
  for (auto it = in_flight_.begin(); it != in_flight_.end();) {
    InFlight& flight = it->second;
    if (flight.leaving || std::binary_search(shown.begin(), shown.end(), flight.pod_name)) {
      Erase(row.id, flight);
    }
    if (flight.budgets.empty()) {
      in_flight_.erase(it++);
    } else {
      ++it;
    }
  }
}

void DisruptionBudgets::Erase(BudgetId id, InFlight& flight) {
  const auto found = std::find(flight.budgets.begin(), flight.budgets.end(), id);
  if (found == flight.budgets.end()) return;
  flight.budgets.erase(found);
  Row* const row = FindRow(id);
  if (row == nullptr) return;
  --row->charged;
  Tell(id);
}

bool DisruptionBudgets::Remove(absl::string_view ns, absl::string_view name,
                               absl::string_view uid) {
  const auto it = rows_.find(Key(std::string(ns), std::string(name)));
  if (it == rows_.end() || (!uid.empty() && it->second.budget.meta.uid != uid)) return false;
  const BudgetId id = it->second.id;
  Tell(id, /*gone=*/true);
  keys_.erase(id);
  rows_.erase(it);
  for (auto flight = in_flight_.begin(); flight != in_flight_.end();) {
    Erase(id, flight->second);
    if (flight->second.budgets.empty()) {
      in_flight_.erase(flight++);
    } else {
      ++flight;
    }
  }
  return true;
}

BudgetIds DisruptionBudgets::Covering(absl::string_view ns, const model::StringMap& labels) const {
  BudgetIds ids;
  if (rows_.empty()) return ids;
  for (auto it = rows_.lower_bound(Key(std::string(ns), ""));
       it != rows_.end() && it->first.first == ns; ++it) {
    if (Selects(it->second.budget, labels)) ids.push_back(it->second.id);
  }
  return ids;
}

int64_t DisruptionBudgets::Left(BudgetId id) const {
  const Row& row = RowOf(id);
  return std::max<int64_t>(0, row.budget.Allowed() - row.charged);
}

std::string DisruptionBudgets::Name(BudgetId id) const { return model::Key(RowOf(id).budget.meta); }

void DisruptionBudgets::Charge(const std::string& uid, absl::string_view pod_name,
                               const BudgetIds& covering) {
  if (covering.empty()) return;
  auto [it, added] = in_flight_.try_emplace(uid);
  if (!added) return;
  it->second.pod_name = std::string(pod_name);
  for (const BudgetId id : covering) {
    Row* const row = FindRow(id);
    if (row == nullptr) continue;
    it->second.budgets.push_back(id);
    ++row->charged;
    Tell(id);
  }
  if (it->second.budgets.empty()) in_flight_.erase(it);
}

void DisruptionBudgets::Release(absl::string_view uid) {
  const auto it = in_flight_.find(uid);
  if (it == in_flight_.end()) return;
  while (!it->second.budgets.empty()) Erase(it->second.budgets.back(), it->second);
  in_flight_.erase(it);
}

void DisruptionBudgets::SeenLeaving(absl::string_view uid) {
  const auto it = in_flight_.find(uid);
  if (it != in_flight_.end()) it->second.leaving = true;
}

// ---- of ClusterState

void ClusterState::TellBudget(BudgetId id, bool gone) {
  Tell({.kind = gone ? StateChange::Kind::kBudgetGone : StateChange::Kind::kBudget, .row = id});
}

Change ClusterState::UpsertDisruptionBudget(const model::PodDisruptionBudget& budget) {
  Change change;
  change.policy = budgets_.Upsert(budget);
  return change;
}

Change ClusterState::RemoveDisruptionBudget(absl::string_view ns, absl::string_view name,
                                            absl::string_view uid) {
  Change change;
  change.policy = budgets_.Remove(ns, name, uid);
  return change;
}

BudgetIds ClusterState::BudgetsOf(const PodRecord& pod) const {
  if (budgets_.empty() || !pod.phase_running || pod.terminating) return {};
  BudgetIds budgets = budgets_.Covering(pod.ns, pod.labels);
  if (!pod.ready && budgets.size() == 1 && budgets_.LetsUnhealthyGo(budgets.front())) {
    budgets.clear();
  }
  return budgets;
}

void ClusterState::ChargeBudgets(PodId id) {
  const PodRecord& pod = pods_[id];
  if (!budgets_.empty()) budgets_.Charge(pod.uid, pod.name, BudgetsOf(pod));
}

}  // namespace fairlead::state
