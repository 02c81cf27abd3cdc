#include "scheduler/engine/victim_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "queues/job_order.h"
#include "queues/limits.h"
#include "queues/min_runtime.h"

namespace fairlead::engine {
namespace {

std::vector<queues::VictimQueue> ByQueue(const std::vector<VictimUnit>& units,
                                         const std::vector<bool>& moved) {
  std::vector<queues::VictimQueue> victims;
  for (size_t i = 0; i < units.size(); ++i) {
    if (i < moved.size() && moved[i]) continue;
    const VictimUnit& unit = units[i];
    auto it = std::find_if(victims.begin(), victims.end(),
                           [&](const queues::VictimQueue& v) { return v.leaf == unit.leaf; });
    if (it == victims.end()) it = victims.insert(victims.end(), {unit.leaf, {}});
    it->pieces.push_back(unit.charge);
  }
  return victims;
}

void EvictAll(state::Transaction& txn, const std::vector<VictimUnit>& units) {
  for (const VictimUnit& unit : units) {
    for (state::PodId pod : unit.pods) txn.Evict(pod);
  }
}

std::vector<bool> MustMove(const std::vector<VictimUnit>& units) {
  std::vector<bool> moved;
  moved.reserve(units.size());
  for (const VictimUnit& unit : units) moved.push_back(unit.must_move);
  return moved;
}

bool WithinQuota(const SearchContext& context, const SearchStep& step) {
  for (const queues::QueueId queue : context.tree.Ancestors(step.leaf)) {
    for (const model::ResourceIndex r : context.tree.resources()) {
      const int64_t quota = context.tree.BoundsOf(queue, r).quota;
      if (step.request[r] <= 0 || quota == model::kUnlimited) continue;
      if (model::SaturatingAdd(context.ledger.allocated(queue, r), step.request[r]) > quota) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

bool VictimSearch::Helps(const VictimUnit& unit, const SearchStep& step) const {
  if (step.limit_blocked) return true;
  state::PodClassId last = state::kNoId;
  for (state::PodId wanted_pod : step.step.pods) {
    const state::PodClassId id = state_.pod(wanted_pod).pod_class;
    if (id == last) continue;
    last = id;
    const state::PodClass& wanted = state_.pod_class(id);
    const framework::Context context{state_, wanted, id, framework::Room::kFuture};
    for (state::PodId victim : unit.pods) {
      const state::NodeInfo& node = state_.node(state_.pod(victim).node);
      if (node.exists && framework_.FilterNodeObject(context, node, nullptr)) return true;
    }
  }
  return false;
}

bool VictimSearch::Try(state::Transaction& txn, state::Transaction::Checkpoint start,
                       const SearchContext& context, const SearchStep& step, const Rules& rules,
                       const NodeSetPtr& within, Solution& solution) {
  txn.RollbackTo(start);
  solution.within = within;
  EvictAll(txn, solution.units);
  if (queues::CheckLimits(context.tree, context.live, step.leaf, step.request,
                          step.workload.preemptible)
          .has_value()) {
    return false;
  }
  if (!GiveOut(txn, context, step, rules, solution)) return false;
  for (size_t i = 0; i < solution.units.size(); ++i) {
    if ((rules.everybody_moves || solution.units[i].must_move) && !solution.moved[i]) return false;
  }
  if (rules.allowed != nullptr && !rules.allowed(solution.units, solution.moved)) return false;
  return context.keeps_bounds == nullptr ||
         context.keeps_bounds(step.leaf, step.workload, step.step.pods);
}

bool VictimSearch::GiveOut(state::Transaction& txn, const SearchContext& context,
                           const SearchStep& step, const Rules& rules, Solution& solution) {
  struct Entry {
    ServiceKey key;
    size_t unit;  // kStep, kInLine, or an index of the solution's units
    const model::Resources* request;
    bool operator<(const Entry& other) const {
      return key != other.key ? key < other.key : unit > other.unit;
    }
  };
  constexpr size_t kStep = static_cast<size_t>(-1);
  constexpr size_t kInLine = static_cast<size_t>(-2);
  solution.moved.assign(solution.units.size(), false);
  const bool may_move = rules.everybody_moves || context.options.consolidating_reclaim;
  std::map<queues::QueueId, std::vector<Entry>> leaves;
  const ServiceKey own = MakeServiceKey(step.workload);
  leaves[step.leaf].push_back({own, kStep, &step.request});
  if (may_move) {
    for (size_t i = 0; i < solution.units.size(); ++i) {
      const VictimUnit& unit = solution.units[i];
      ServiceKey key = MakeServiceKey(state_.workload(unit.workload));
      key.elastic_state = unit.core ? 0 : 1;
      leaves[unit.leaf].push_back({std::move(key), i, &unit.charge});
    }
  }
  for (auto& [leaf, entries] : leaves) {
    const auto line = context.lines.find(leaf);
    if (line != context.lines.end()) {
      // Only who stands before somebody of ours; equal requests in a row weigh as one.
      const ServiceKey last = std::max_element(entries.begin(), entries.end())->key;
      const model::Resources* former = nullptr;
      for (const InLine& waiting : line->second) {
        if (last < waiting.key) break;
        const state::Workload& workload = state_.workload(waiting.key.workload);
        if (workload.id == step.workload.id || workload.Count(state::PodStatus::kPipelined) > 0)
          continue;
        if (former != nullptr && *former == waiting.request) continue;
        former = &waiting.request;
        entries.push_back({waiting.key, kInLine, &waiting.request});
      }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return b < a; });
  }
  auto next = [&](queues::QueueId leaf) -> const model::Resources* {
    const auto it = leaves.find(leaf);
    return it == leaves.end() || it->second.empty() ? nullptr : it->second.back().request;
  };
  queues::QueueOrderIterator order(context.tree, context.live, context.shares, next,
                                   {.cluster_total = state_.total_for_queues()});
  std::set<state::WorkloadId> lost;
  bool placed = false;
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    std::vector<Entry>& entries = leaves.at(*leaf);
    const size_t which = entries.back().unit;
    entries.pop_back();
    if (which == kStep) {
      placed = placer_.Place(txn, step.workload, step.step, Placer::Mode::kPromise, solution.within)
                   .placed;
      if (!placed) return false;
    } else if (which != kInLine) {
      const VictimUnit& unit = solution.units[which];
      const state::Workload& workload = state_.workload(unit.workload);
      // Extras of a workload whose rest has no place have none.
      const auto mark = txn.Mark();
      solution.moved[which] = !lost.contains(unit.workload) &&
                              !queues::CheckLimits(context.tree, context.live, unit.leaf,
                                                   unit.charge, workload.preemptible)
                                   .has_value() &&
                              placer_.Replace(txn, workload, unit.pods);
      if (solution.moved[which] && context.keeps_bounds != nullptr &&
          !context.keeps_bounds(unit.leaf, workload, unit.pods)) {
        txn.RollbackTo(mark);
        solution.moved[which] = false;
      }
      if (!solution.moved[which] && unit.core) lost.insert(unit.workload);
    }
    order.Changed(*leaf);
  }
  return placed;
}

bool VictimSearch::TryOnOneNode(state::Transaction& txn, state::Transaction::Checkpoint start,
                                const SearchContext& context, const SearchStep& step,
                                const Rules& rules, const SearchBudgets& budgets,
                                Solution& solution) {
  if (step.limit_blocked) return false;
  const VictimUnit& last = solution.units.back();
  if (last.pods.size() == 1 && solution.units.size() == 1) return false;  // the same as with all
  txn.RollbackTo(start);
  std::vector<state::NodeId> free;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    if (state_.node(id).exists && state_.node(id).Future()[model::kGpu] > 0) free.push_back(id);
  }
  std::set<state::NodeId> tried;
  for (const VictimUnit::Place& place : last.places) {
    if (!tried.insert(place.node).second) continue;
    std::vector<state::NodeId> nodes = free;
    if (std::find(nodes.begin(), nodes.end(), place.node) == nodes.end()) {
      nodes.push_back(place.node);
      std::sort(nodes.begin(), nodes.end(), [&](state::NodeId x, state::NodeId y) {
        return state_.node(x).name_rank < state_.node(y).name_rank;
      });
    }
    Solution here;
    for (const VictimUnit& unit : solution.units) {
      if (std::any_of(unit.places.begin(), unit.places.end(),
                      [&](const VictimUnit::Place& p) { return p.node == place.node; })) {
        here.units.push_back(unit);
      }
    }
    if (!budgets.Choose(here.units)) continue;
    if (Try(txn, start, context, step, rules, std::make_shared<NodeSet>(std::move(nodes)), here)) {
      solution = std::move(here);
      return true;
    }
  }
  return false;
}

void VictimSearch::SpareUnmoved(state::Transaction& txn, state::Transaction::Checkpoint start,
                                const SearchContext& context, const SearchStep& step,
                                const Rules& rules, Solution& solution) {
  Solution fewer;
  bool spared = false;
  for (size_t i = 0; i < solution.units.size(); ++i) {
    VictimUnit unit = solution.units[i];
    if (solution.moved[i]) {
      VictimUnit kept = unit;
      kept.pods.clear();
      kept.places.clear();
      for (size_t j = 0; j < unit.pods.size(); ++j) {
        const state::PodRecord& pod = state_.pod(unit.pods[j]);
        if (pod.node == unit.places[j].node && pod.gpu_groups == unit.places[j].gpus) {
          spared = true;
          continue;
        }
        kept.pods.push_back(unit.pods[j]);
        kept.places.push_back(unit.places[j]);
      }
      unit = std::move(kept);
    }
    if (!unit.pods.empty()) fewer.units.push_back(std::move(unit));
  }
  if (!spared || fewer.units.empty()) return;
  if (Try(txn, start, context, step, rules, solution.within, fewer)) {
    solution = std::move(fewer);
    return;
  }
  const bool again = Try(txn, start, context, step, rules, solution.within, solution);
  FAIRLEAD_CHECK(again, "a placement that was found before is gone");
}

void VictimSearch::Minimise(state::Transaction& txn, state::Transaction::Checkpoint start,
                            const SearchContext& context, const SearchStep& step,
                            const Rules& rules, Solution& solution) {
  constexpr size_t kMostUnits = 32;  // beyond it the search for spared victims costs too much
  auto attempt = [&](std::vector<VictimUnit> fewer) {
    Solution other{std::move(fewer), {}, nullptr};
    if (!Try(txn, start, context, step, rules, solution.within, other)) return false;
    solution = std::move(other);
    return true;
  };
  if (!step.limit_blocked && solution.units.size() > 1) {
    // Nodes that the step does not use need not have been emptied.
    std::set<state::NodeId> used;
    for (state::PodId pod : step.step.pods) used.insert(state_.pod(pod).node);
    std::vector<VictimUnit> needed;
    for (const VictimUnit& unit : solution.units) {
      if (std::any_of(unit.places.begin(), unit.places.end(),
                      [&](const VictimUnit::Place& place) { return used.contains(place.node); })) {
        needed.push_back(unit);
      }
    }
    if (needed.size() < solution.units.size()) attempt(std::move(needed));
  }
  if (solution.units.size() > 1 && solution.units.size() <= kMostUnits) {
    for (size_t i = solution.units.size() - 1; i-- > 0;) {
      std::vector<VictimUnit> fewer = solution.units;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      attempt(std::move(fewer));
    }
  }
  const bool again = Try(txn, start, context, step, rules, solution.within, solution);
  FAIRLEAD_CHECK(again, "a placement that was found before is gone");
}

void VictimSearch::Report(const SearchContext& context, const Solution& solution,
                          SearchOutcome& outcome) const {
  outcome.found = true;
  std::map<state::BudgetId, int64_t> left;
  auto against = [&](const state::PodRecord& pod) {
    bool beyond = false;
    for (const state::BudgetId id : state_.BudgetsOf(pod)) {
      const auto [it, added] = left.try_emplace(id, 0);
      if (added) it->second = state_.budgets().Left(id);
      beyond = --it->second < 0 || beyond;
    }
    return beyond;
  };
  for (size_t i = 0; i < solution.units.size(); ++i) {
    const VictimUnit& unit = solution.units[i];
    for (size_t j = 0; j < unit.pods.size(); ++j) {
      const state::PodId pod = unit.pods[j];
      outcome.victims.push_back({pod, unit.places[j],
                                 solution.moved[i] ? state_.pod(pod).node : state::kNoId,
                                 context.against_budgets && against(state_.pod(pod))});
    }
  }
}

bool VictimSearch::Solve(state::Transaction& txn, state::Transaction::Checkpoint start,
                         const SearchContext& context, const SearchStep& step, const Rules& rules,
                         const SearchBudgets& budgets, const std::vector<VictimUnit>& units,
                         SearchOutcome& outcome) {
  Solution attempt{units, {}, nullptr};
  const bool solved =
      TryOnOneNode(txn, start, context, step, rules, budgets, attempt) ||
      (budgets.Choose(attempt.units) && Try(txn, start, context, step, rules, nullptr, attempt));
  if (!solved) return false;
  Minimise(txn, start, context, step, rules, attempt);
  SpareUnmoved(txn, start, context, step, rules, attempt);
  Report(context, attempt, outcome);
  return true;
}

void VictimSearch::ExplainSpared(const Rules& rules, const SearchBudgets& budgets,
                                 const VictimWalks& walks, SearchOutcome& outcome) {
  outcome.spared = budgets.spared_somebody();
  budgets.Explain(rules.name, outcome.details);
  int64_t refused = 0;
  std::set<std::string> by;
  for (const auto& [leaf, walk] : walks) {
    refused += walk.refused();
    by.insert(walk.refusing().begin(), walk.refusing().end());
  }
  if (refused == 0) return;
  outcome.details.push_back(
      absl::StrCat(rules.name, ", possible victims: ", refused, " refused ",
                   by.empty() ? "by the API server a moment ago"
                              : absl::StrCat("by PodDisruptionBudget ", absl::StrJoin(by, ", "))));
}

bool VictimSearch::Search(state::Transaction& txn, const SearchContext& context,
                          const SearchStep& step, const Rules& rules, VictimWalks& walks,
                          SearchOutcome& outcome) {
  auto next = [&](queues::QueueId queue) -> const model::Resources* {
    const auto it = walks.find(queue);
    const VictimUnit* unit = it == walks.end() ? nullptr : it->second.Peek();
    return unit == nullptr ? nullptr : &unit->charge;
  };
  queues::QueueOrderIterator order(context.tree, context.ledger, context.shares, next,
                                   {.victims = true, .cluster_total = state_.total_for_queues()});
  const auto start = txn.Mark();
  const NodeFits::Wanted wanted = fits_.WantedBy(step.step.pods);
  Solution taken;
  std::set<state::WorkloadId> workloads;
  int64_t victims = 0;
  size_t next_try = 0;
  bool refused = false;
  SearchBudgets budgets(state_, context.against_budgets);
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    LeafVictims& walk = walks.at(*leaf);
    VictimUnit unit = walk.Take();
    if (!Helps(unit, step) || !budgets.Admits(unit)) {
      order.Changed(*leaf);
      continue;
    }
    if (victims >= context.options.max_victims_per_search ||
        placer_.work() > static_cast<uint64_t>(context.options.max_search_work)) {
      outcome.details.push_back(absl::StrCat(rules.name, ": gave up after ", victims,
                                             " possible victims (max_victims_per_search, "
                                             "max_search_work)"));
      break;
    }
    if (rules.max_workloads != model::kUnlimited && !workloads.contains(unit.workload) &&
        static_cast<int64_t>(workloads.size()) >= rules.max_workloads) {
      outcome.details.push_back(absl::StrCat(rules.name, ": gave up after moving ",
                                             workloads.size(), " workloads (its maximum)"));
      break;
    }
    taken.units.push_back(unit);
    if (rules.allowed != nullptr && !rules.allowed(taken.units, MustMove(taken.units))) {
      if (!rules.others_move) {
        taken.units.pop_back();
        refused = true;
        walk.Close();
        order.Changed(*leaf);
        continue;
      }
      taken.units.back().must_move = true;
    }
    workloads.insert(unit.workload);
    for (state::PodId pod : unit.pods) {
      txn.Evict(pod);
      ++victims;
    }
    order.Picked(*leaf, unit.charge);
    if (taken.units.size() < next_try || !fits_.Possible(wanted)) continue;
    if (Solve(txn, start, context, step, rules, budgets, taken.units, outcome)) return true;
    // Long lists are tried less often: what one unit more changes is little.
    if (taken.units.size() > 32) next_try = taken.units.size() + taken.units.size() / 8;
    // Back to nothing but the evictions.
    txn.RollbackTo(start);
    EvictAll(txn, taken.units);
  }
  txn.RollbackTo(start);
  ExplainSpared(rules, budgets, walks, outcome);
  if (refused && outcome.details.empty()) {
    outcome.details.push_back(
        absl::StrCat(rules.name, ": taking more would leave the other queue below its own share"));
  }
  return false;
}

bool VictimSearch::AnybodyToPreempt(queues::QueueId leaf, int32_t priority) {
  index_.CatchUp();
  const auto found = index_.leaves().find(leaf);
  return found != index_.leaves().end() && -found->second.begin()->minus_priority < priority;
}

bool VictimSearch::AnybodyToReclaimFrom(const queues::ReclaimContext& rights,
                                        const queues::Reclaimer& reclaimer) {
  if (!queues::CanReclaim(rights, reclaimer).allowed()) return false;
  index_.CatchUp();
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (leaf != reclaimer.leaf && rights.tree.Usable(leaf) &&
        queues::MayEverReclaimFrom(rights, reclaimer, leaf)) {
      return true;
    }
  }
  return false;
}

SearchOutcome VictimSearch::Preempt(state::Transaction& txn, const SearchContext& context,
                                    const SearchStep& step) {
  SearchOutcome outcome;
  index_.CatchUp();
  const auto leaf = index_.leaves().find(step.leaf);
  if (leaf == index_.leaves().end()) return outcome;
  // Nobody of lower priority, protected or not: there is nothing to say.
  if (-leaf->second.begin()->minus_priority >= step.workload.priority) return outcome;
  VictimFilter filter;
  filter.now = context.now;
  filter.moved = &context.moved;
  filter.refusals = &context.refusals;
  filter.protection =
      queues::PreemptMinRuntime(context.tree, step.leaf, context.options.preempt_min_runtime);
  filter.below_priority = step.workload.priority;
  VictimWalks walks;
  walks.emplace(step.leaf, LeafVictims(state_, books_, leaf->second, step.leaf, filter));
  Rules rules;
  rules.name = "preemption";
  if (Search(txn, context, step, rules, walks, outcome)) return outcome;
  const LeafVictims::Protection kept = walks.begin()->second.Protected();
  outcome.wake_at = kept.first_end;
  if (kept.workloads > 0) {
    outcome.details.push_back(
        absl::StrCat("preemption: ", kept.workloads,
                     " workloads of lower priority are protected by the minimum runtime"));
  }
  if (outcome.details.empty()) {
    outcome.details.push_back(
        "preemption: the room of all workloads of lower priority would not be enough");
  }
  return outcome;
}

SearchOutcome VictimSearch::Reclaim(state::Transaction& txn, const SearchContext& context,
                                    const SearchStep& step) {
  SearchOutcome outcome;
  const queues::ReclaimContext rights{context.tree, context.ledger, context.shares,
                                      context.options.saturation_multiplier_micro,
                                      context.options.round_to_gang};
  const queues::Reclaimer reclaimer{step.leaf, step.request, step.workload.preemptible};
  const queues::ReclaimAnswer may = queues::CanReclaim(rights, reclaimer);
  if (!may.allowed()) {
    outcome.details.push_back(absl::StrCat(
        "reclaim: queue ", context.tree.Name(may.queue), " would exceed its ",
        may.refusal == queues::ReclaimRefusal::kOverFairShare ? "fair share" : "quota"));
    return outcome;
  }
  index_.CatchUp();
  Rules rules;
  rules.name = "reclaim";
  rules.allowed = [&](const std::vector<VictimUnit>& units, const std::vector<bool>& moved) {
    const std::vector<queues::VictimQueue> victims = ByQueue(units, moved);
    // Moving others about is for queues in need only: else one that has plenty could disturb all
    // (KAI's pull request 1565).
    if (victims.empty() && !WithinQuota(context, step)) return false;
    return queues::Reclaimable(rights, reclaimer, victims).allowed();
  };
  if (ReclaimFrom(txn, context, step, rules, rights, reclaimer, outcome)) return outcome;
  if (context.options.consolidating_reclaim && !context.against_budgets &&
      WithinQuota(context, step)) {
    SearchOutcome moving;
    rules.others_move = true;
    rules.max_workloads = context.options.max_consolidation_workloads;
    if (ReclaimFrom(txn, context, step, rules, rights, reclaimer, moving)) return moving;
  }
  return outcome;
}

bool VictimSearch::ReclaimFrom(state::Transaction& txn, const SearchContext& context,
                               const SearchStep& step, const Rules& rules,
                               const queues::ReclaimContext& rights,
                               const queues::Reclaimer& reclaimer, SearchOutcome& outcome) {
  VictimWalks walks;
  bool anybody = false;
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (leaf == step.leaf || !context.tree.Usable(leaf)) continue;
    anybody = true;
    if (!rules.others_move && !queues::MayEverReclaimFrom(rights, reclaimer, leaf)) continue;
    VictimFilter filter;
    filter.now = context.now;
    filter.moved = &context.moved;
    filter.refusals = &context.refusals;
    filter.protection =
        queues::ReclaimMinRuntime(context.tree, context.options.reclaim_resolve, step.leaf, leaf,
                                  context.options.reclaim_min_runtime);
    walks.emplace(leaf, LeafVictims(state_, books_, workloads, leaf, filter));
  }
  if (walks.empty()) {
    if (anybody) {
      outcome.details.push_back("reclaim: no other queue holds more than its fair share");
    }
    return false;
  }
  if (Search(txn, context, step, rules, walks, outcome)) return true;
  int64_t kept = 0;
  for (const auto& [leaf, walk] : walks) {
    const LeafVictims::Protection protection = walk.Protected();
    kept += protection.workloads;
    outcome.wake_at = std::min(outcome.wake_at, protection.first_end);
  }
  if (kept > 0) {
    outcome.details.push_back(
        absl::StrCat("reclaim: ", kept, " workloads are protected by the minimum runtime"));
  } else if (outcome.details.empty()) {
    outcome.details.push_back("reclaim: the room of all that may be taken would not be enough");
  }
  return false;
}

SearchOutcome VictimSearch::Consolidate(state::Transaction& txn, const SearchContext& context,
                                        const SearchStep& step) {
  SearchOutcome outcome;
  index_.CatchUp();
  VictimFilter filter;
  filter.now = context.now;
  filter.moved = &context.moved;
  filter.refusals = &context.refusals;
  filter.except = step.workload.id;
  VictimWalks walks;
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (context.tree.Usable(leaf)) {
      walks.emplace(leaf, LeafVictims(state_, books_, workloads, leaf, filter));
    }
  }
  if (walks.empty()) return outcome;
  Rules rules;
  rules.name = "consolidation";
  rules.everybody_moves = true;
  rules.max_workloads = context.options.max_consolidation_workloads;
  Search(txn, context, step, rules, walks, outcome);
  return outcome;
}

}  // namespace fairlead::engine
