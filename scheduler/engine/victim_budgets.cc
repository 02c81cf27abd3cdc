#include "scheduler/engine/victim_budgets.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "scheduler/engine/victim_walk.h"
#include "scheduler/model/scarcity.h"

namespace fairlead::engine {
namespace {

constexpr size_t kMaxNames = 3;  // of budgets in one clause

std::string Names(const std::set<std::string>& names) {
  std::vector<std::string> first(
      names.begin(),
      std::next(names.begin(), static_cast<ptrdiff_t>(std::min(names.size(), kMaxNames))));
  if (names.size() > kMaxNames) first.push_back("...");
  return absl::StrJoin(first, ", ");
}

}  // namespace

// ---- refusals

uint64_t EvictionRefusals::DigestOf(const state::ClusterState& state,
                                    const state::BudgetIds& budgets) {
  if (budgets.empty()) return 0;
  StableHash hash;
  for (const state::BudgetId id : budgets) {
    hash.Add(absl::StrCat(id, "@", state.budgets().Version(id)));
  }
  return std::max<uint64_t>(1, hash.value());
}

void EvictionRefusals::Add(const state::ClusterState& state, const state::PodRecord& pod,
                           absl::Time until, bool by_budget) {
  Refusal& refusal = refusals_[pod.uid];
  refusal = {pod.id, until, 0, ""};
  if (!by_budget) return;
  const state::BudgetIds budgets = state.BudgetsOf(pod);
  refusal.digest = DigestOf(state, budgets);
  std::set<std::string> names;
  for (const state::BudgetId id : budgets) names.insert(state.budgets().Name(id));
  refusal.budgets = Names(names);
}

bool EvictionRefusals::Stands(const state::ClusterState& state, const Refusal& refusal,
                              absl::Time now) {
  if (refusal.digest == 0) return now < refusal.until;
  const state::BudgetIds budgets = state.BudgetsOf(state.pod(refusal.pod));
  if (DigestOf(state, budgets) == refusal.digest) return true;
  const bool lets_it_go = std::all_of(budgets.begin(), budgets.end(), [&](state::BudgetId id) {
    return state.budgets().Left(id) > 0;
  });
  return !lets_it_go && now < refusal.until;
}

void EvictionRefusals::AddFor(state::PodClassId preemptor, const state::PodRecord& pod,
                              absl::Time until) {
  by_extenders_[{pod.uid, preemptor}] = until;
}

bool EvictionRefusals::Stands(const state::ClusterState& state, const state::PodRecord& pod,
                              absl::Time now,
                              absl::Span<const state::PodClassId> preemptors) const {
  if (StandsFor(pod, now, preemptors)) return true;
  if (refusals_.empty()) return false;
  const auto found = refusals_.find(pod.uid);
  return found != refusals_.end() && Stands(state, found->second, now);
}

bool EvictionRefusals::StandsFor(const state::PodRecord& pod, absl::Time now,
                                 absl::Span<const state::PodClassId> preemptors) const {
  if (by_extenders_.empty()) return false;
  return std::any_of(preemptors.begin(), preemptors.end(), [&](state::PodClassId preemptor) {
    const auto found = by_extenders_.find({pod.uid, preemptor});
    return found != by_extenders_.end() && now < found->second;
  });
}

std::string EvictionRefusals::BudgetsThatRefused(absl::string_view uid) const {
  const auto found = refusals_.find(uid);
  return found == refusals_.end() ? "" : found->second.budgets;
}

absl::Time EvictionRefusals::NextEnd(const state::ClusterState& state, absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [uid, refusal] : refusals_) {
    if (refusal.until <= now || state.pod(refusal.pod).uid != uid) continue;
    if (refusal.digest != 0 &&
        DigestOf(state, state.BudgetsOf(state.pod(refusal.pod))) == refusal.digest) {
      continue;  // an event will tell
    }
    next = std::min(next, refusal.until);
  }
  for (const auto& [key, until] : by_extenders_) {
    if (until > now) next = std::min(next, until);
  }
  return next;
}

void EvictionRefusals::Trim(const state::ClusterState& state, absl::Time now) {
  for (auto it = refusals_.begin(); it != refusals_.end();) {
    const bool gone = state.pod(it->second.pod).uid != it->first;
    if (gone || !Stands(state, it->second, now)) {
      refusals_.erase(it++);
    } else {
      ++it;
    }
  }
  absl::erase_if(by_extenders_, [now](const auto& entry) { return entry.second <= now; });
}

// ---- budgets

BudgetNeeds NeedsOf(const state::ClusterState& state, const std::vector<state::PodId>& pods) {
  BudgetNeeds all;
  for (const state::PodId pod : pods) {
    const state::BudgetIds budgets = state.BudgetsOf(state.pod(pod));
    if (budgets.size() > 1) ++all.several;
    for (const state::BudgetId id : budgets) {
      auto it = std::find_if(all.needs.begin(), all.needs.end(),
                             [&](const BudgetNeed& need) { return need.budget >= id; });
      if (it == all.needs.end() || it->budget != id) it = all.needs.insert(it, {id, 0});
      ++it->pods;
    }
  }
  return all;
}

bool BudgetSpending::Exceeds(const state::PodRecord& pod) {
  bool exceeds = false;
  for (const state::BudgetId id : state_.BudgetsOf(pod)) {
    const auto [it, added] = left_.try_emplace(id, 0);
    if (added) it->second = state_.budgets().Left(id);
    exceeds = --it->second < 0 || exceeds;
  }
  return exceeds;
}

bool SearchBudgets::Admits(const VictimUnit& unit) {
  if (unit.core && !keep_core_.empty() && keep_core_.contains(unit.workload)) return false;
  if (unit.budgets.needs.empty()) return true;
  bool spared = unit.budgets.several > 0;
  if (spared) {
    several_ += unit.budgets.several;
  } else if (!against_) {
    for (const BudgetNeed& need : unit.budgets.needs) {
      if (need.pods <= budgets_.Left(need.budget)) continue;
      spared = true;
      spared_ += need.pods;
      sparing_.insert(budgets_.Name(need.budget));
    }
  }
  if (spared) keep_core_.insert(unit.workload);
  return !spared;
}

bool SearchBudgets::Choose(std::vector<VictimUnit>& units) const {
  if (against_ || budgets_.empty() || units.empty()) return true;
  std::map<state::BudgetId, int64_t> left;
  bool enough = true;
  for (const VictimUnit& unit : units) {
    for (const BudgetNeed& need : unit.budgets.needs) {
      const auto [it, added] = left.try_emplace(need.budget, 0);
      if (added) it->second = budgets_.Left(need.budget);
      it->second -= need.pods;
      enough = enough && it->second >= 0;
    }
  }
  if (enough) return true;
  for (auto& [id, rest] : left) rest = budgets_.Left(id);
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return model::IsLarger(units[a].charge, units[b].charge);
  });
  std::vector<bool> kept(units.size(), true);
  std::set<state::WorkloadId> keep_core;
  for (const size_t i : order) {
    const auto& needs = units[i].budgets.needs;
    kept[i] = std::all_of(needs.begin(), needs.end(), [&](const BudgetNeed& need) {
      return need.pods <= left.at(need.budget);
    });
    if (!kept[i]) keep_core.insert(units[i].workload);
    for (const BudgetNeed& need : needs) left.at(need.budget) -= kept[i] ? need.pods : 0;
  }
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i].core && keep_core.contains(units[i].workload)) kept[i] = false;
  }
  const bool last = kept.back();
  size_t at = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!kept[i]) continue;
    if (at != i) units[at] = std::move(units[i]);
    ++at;
  }
  units.resize(at);
  return last;
}

void SearchBudgets::Explain(absl::string_view action, std::vector<std::string>& details) const {
  // Equal words whatever the number: a verdict is written again when its words change.
  if (spared_ > 0) {
    details.push_back(absl::StrCat(action, ", possible victims: ", spared_,
                                   " protected by PodDisruptionBudgets (", Names(sparing_), ")"));
  }
  if (several_ > 0) {
    details.push_back(absl::StrCat(
        action, ", possible victims: ", several_,
        " covered by several PodDisruptionBudgets, whose eviction is never let through"));
  }
}

}  // namespace fairlead::engine
