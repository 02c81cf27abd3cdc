#include "scheduler/engine/node_preemption.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace fairlead::engine {
namespace {

using Kind = state::StateChange::Kind;

bool SparesNone(const state::PodRecord&) { return false; }

}  // namespace

// ---- what may make a row wrong

state::ChangeKinds NodePreemption::Kinds() const {
  return {Kind::kNodeUsage,     Kind::kNodeObject,  Kind::kNodesRanked, Kind::kWorkload,
          Kind::kPodLabelsCome, Kind::kPodCharged,  Kind::kBudget,      Kind::kBudgetGone,
          Kind::kClassGone,     Kind::kClassAnswers};
}

void NodePreemption::OnChange(const state::StateChange& change) {
  if (rows_.empty() || trying_) return;
  switch (change.kind) {
    case Kind::kNodesRanked:
      return ForgetAll();
    case Kind::kWorkload:
      return log_.Add({true, change.workload});
    case Kind::kPodCharged:
      return LogNode(state_.pod(change.pod).node);
    case Kind::kBudget:
    case Kind::kBudgetGone:
      return OnBudget(change.row);
    case Kind::kClassGone:
    case Kind::kClassAnswers:
      std::erase_if(rows_, [&](const auto& row) { return row.first.pod_class == change.row; });
      return;
    default:
      return LogNode(change.to_node);
  }
}

void NodePreemption::LogNode(state::NodeId node) {
  if (IsOfCluster(node)) log_.Add({false, node});
}

template <typename F>
void NodePreemption::ForEachLogged(uint64_t from, F f) const {
  // A gang is in it once for each pod that moved: its nodes are gone through once.
  absl::flat_hash_map<state::WorkloadId, uint64_t> workloads;
  for (uint64_t number = from; number < log_.end(); ++number) {
    const Entry& entry = log_.At(number);
    if (entry.is_workload) {
      workloads[entry.id] = number;
    } else {
      f(entry.id, number);
    }
  }
  for (const auto& [workload, number] : workloads) {
    for (const state::PodId pod : state_.workload(workload).pods) {
      const state::NodeId node = state_.pod(pod).node;
      if (IsOfCluster(node)) f(node, number);
    }
  }
}

// A budget that only allows another number concerns the nodes with pods of it; one that selects
// others may concern any.
void NodePreemption::OnBudget(state::BudgetId budget) {
  const auto known = budgets_.find(budget);
  const state::DisruptionBudgets& budgets = state_.budgets();
  if (known == budgets_.end() || known->second.selector != budgets.Object(budget).selector ||
      known->second.lets_unhealthy_go != budgets.LetsUnhealthyGo(budget)) {
    return ForgetAll();
  }
  known->second.change = ++budget_changes_;
}

bool NodePreemption::IsOfCluster(state::NodeId node) const {
  return node != state::kNoId && state_.node(node).kind != state::NodeKind::kVirtual;
}

void NodePreemption::KnowBudgets() {
  const state::DisruptionBudgets& budgets = state_.budgets();
  budgets.ForEach([&](state::BudgetId id) {
    budgets_.try_emplace(id, Budget{0, budgets.Object(id).selector, budgets.LetsUnhealthyGo(id)});
  });
}

void NodePreemption::ForgetAll() {
  rows_.clear();
  budgets_.clear();
}

void NodePreemption::DropOldest() {
  rows_.erase(absl::c_min_element(
      rows_, [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
}

// ---- rows

NodePreemption::Slot NodePreemption::Look(Hypothesis& what_if, const NodePreemptor& preemptor,
                                          state::NodeId id, uint64_t& tried) const {
  Slot slot;
  slot.at = log_.end();
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists || !node.TakesBindings() ||
      !what_if.Suits(preemptor.pod_class, id)) {
    return slot;
  }
  slot.budgets = BudgetsAmongVictims(state_, preemptor, id);
  ++tried;
  trying_ = true;
  const auto found = FindNodeVictims(state_, what_if, preemptor, id, SparesNone, tried);
  trying_ = false;
  if (found.has_value()) {
    slot.is_candidate = true;
    slot.candidate = {found->cost, node.name_rank, id};
  }
  return slot;
}

void NodePreemption::Renew(Hypothesis& what_if, const NodePreemptor& preemptor, Row& row,
                           state::NodeId node, uint64_t& tried) const {
  if (node >= row.by_node.size()) row.by_node.resize(node + 1);
  Slot& slot = row.by_node[node];
  if (slot.is_candidate) row.candidates.erase(slot.candidate);
  slot = Look(what_if, preemptor, node, tried);
  if (slot.is_candidate) row.candidates.insert(slot.candidate);
}

void NodePreemption::CatchUp(Hypothesis& what_if, const NodePreemptor& preemptor, Row& row,
                             uint64_t& tried) {
  if (row.seen < log_.start()) {
    row.by_node.clear();
    row.candidates.clear();
    KnowBudgets();
    for (const auto& [name, node] : state_.nodes_by_name()) {
      Renew(what_if, preemptor, row, node, tried);
    }
    row.seen = log_.end();
    row.budgets_seen = budget_changes_;
  }
  ForEachLogged(row.seen, [&](state::NodeId node, uint64_t number) {
    if (node < row.by_node.size() && row.by_node[node].at > number) return;
    Renew(what_if, preemptor, row, node, tried);
  });
  row.seen = log_.end();
  if (row.budgets_seen == budget_changes_) return;
  for (state::NodeId node = 0; node < row.by_node.size(); ++node) {
    if (absl::c_any_of(row.by_node[node].budgets, [&](state::BudgetId budget) {
          return budgets_.at(budget).change > row.budgets_seen;
        })) {
      Renew(what_if, preemptor, row, node, tried);
    }
  }
  row.budgets_seen = budget_changes_;
}

void NodePreemption::TryAnew(Hypothesis& what_if, const NodePreemptor& preemptor, uint64_t seed,
                             uint64_t& tried) {
  anew_.clear();
  const auto& nodes = state_.nodes_by_name();
  if (nodes.empty()) return;
  const auto wanted = static_cast<size_t>(
      std::max<int64_t>(kMinCandidates, static_cast<int64_t>(nodes.size()) * kMinPercent / 100));
  auto next = std::next(nodes.begin(), static_cast<ptrdiff_t>(seed % nodes.size()));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Slot slot = Look(what_if, preemptor, next->second, tried);
    if (slot.is_candidate) anew_.insert(slot.candidate);
    // The first of them is the one with the fewest violations.
    if (anew_.size() >= wanted && anew_.begin()->cost.violations == 0) return;
    if (++next == nodes.end()) next = nodes.begin();
  }
}

const NodePreemption::Candidates& NodePreemption::CandidatesFor(Hypothesis& what_if,
                                                                const NodePreemptor& preemptor,
                                                                uint64_t seed, uint64_t& tried) {
  if (!framework_.FiltersNodeLocal(state_.pod_class(preemptor.pod_class))) {
    TryAnew(what_if, preemptor, seed, tried);
    return anew_;
  }
  Row& row = rows_[preemptor];
  row.last_use = ++uses_;
  CatchUp(what_if, preemptor, row, tried);
  if (rows_.size() > kMaxRows) DropOldest();
  return row.candidates;
}

std::string NodePreemption::CheckConsistency() const {
  Hypothesis what_if(state_, framework_, order_);
  uint64_t tried = 0;
  for (const auto& [preemptor, row] : rows_) {
    if (row.seen < log_.start() || row.budgets_seen != budget_changes_) continue;
    absl::flat_hash_set<state::NodeId> changed;
    ForEachLogged(row.seen, [&](state::NodeId node, uint64_t) { changed.insert(node); });
    size_t candidates = 0;
    for (state::NodeId node = 0; node < row.by_node.size(); ++node) {
      const Slot& slot = row.by_node[node];
      candidates += slot.is_candidate ? 1 : 0;
      if (changed.contains(node)) continue;
      const Slot now = Look(what_if, preemptor, node, tried);
      if (now.is_candidate != slot.is_candidate ||
          (now.is_candidate && now.candidate != slot.candidate)) {
        return absl::StrCat("node preemption: class ", preemptor.pod_class, ", priority ",
                            preemptor.priority, ": node ", node);
      }
    }
    if (candidates != row.candidates.size()) return "node preemption: number of candidates";
  }
  return "";
}

}  // namespace fairlead::engine
