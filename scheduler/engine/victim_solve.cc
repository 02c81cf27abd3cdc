// How a set of victims is tried out: evict, give the room out, keep the fewest (victim_search.h).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "queues/job_order.h"
#include "queues/limits.h"
#include "scheduler/engine/victim_search.h"
#include "scheduler/model/scarcity.h"

namespace fairlead::engine {
namespace {

// What wants a part of what is freed.
struct FreedEntry {
  QueueOrderKey key;
  size_t unit;  // kStep, or an index of the solution's units
  const model::Resources* request;
  bool operator<(const FreedEntry& other) const {
    return key != other.key ? key < other.key : unit > other.unit;
  }
};
constexpr size_t kStep = static_cast<size_t>(-1);
constexpr size_t kInLine = static_cast<size_t>(-2);  // a waiting workload: it only keeps its turn

// What wants a part in one leaf queue, in queue order: the step, units, and the workloads in line
// before the last of these. A line may be long and its order is known, so it is read as it comes.
class FreedQueue {
 public:
  void Add(FreedEntry entry) { entries_.push_back(std::move(entry)); }
  void Sort() { std::sort(entries_.rbegin(), entries_.rend()); }
  // `searching`: has no turn in line, it is the step.
  void StandInLine(const state::ClusterState& state, const std::vector<PendingWorkload>& line,
                   state::WorkloadId searching) {
    state_ = &state;
    line_ = &line;
    searching_ = searching;
    Advance();
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }

  // Null: nothing is left.
  [[nodiscard]] const model::Resources* Request() const {
    if (entries_.empty()) return nullptr;
    return LineIsNext() ? &(*line_)[at_].request : entries_.back().request;
  }
  // kInLine, or the entry's unit.
  size_t Take() {
    if (LineIsNext()) {
      former_ = &(*line_)[at_++].request;
      Advance();
      return kInLine;
    }
    const size_t unit = entries_.back().unit;
    entries_.pop_back();
    return unit;
  }

 private:
  [[nodiscard]] bool LineIsNext() const {
    return line_ != nullptr && at_ < line_->size() && (*line_)[at_].key <= entries_.back().key;
  }
  // To the next one that has a turn. Of equal requests in a row, one: they weigh the same.
  void Advance() {
    for (; at_ < line_->size(); ++at_) {
      const PendingWorkload& waiting = (*line_)[at_];
      if (waiting.key.workload == searching_ ||
          (former_ != nullptr && *former_ == waiting.request)) {
        continue;
      }
      if (state_->workload(waiting.key.workload).Count(state::PodStatus::kPipelined) == 0) return;
    }
  }

  std::vector<FreedEntry> entries_;  // the next one last
  const state::ClusterState* state_ = nullptr;
  const std::vector<PendingWorkload>* line_ = nullptr;
  size_t at_ = 0;
  state::WorkloadId searching_ = state::kNoId;
  const model::Resources* former_ = nullptr;
};
using FreedQueues = std::map<queues::QueueId, FreedQueue>;

// So many nodes can be looked at for one number each in the time of one filter evaluation.
constexpr uint64_t kLooksAsOneFilter = 8;

// `may_move`: the victims are entries, too. `work` grows by what is read.
FreedQueues WhatWantsTheFreed(const state::ClusterState& state, const SearchContext& context,
                              const SearchStep& step, const std::vector<VictimUnit>& units,
                              bool may_move, uint64_t& work) {
  FreedQueues leaves;
  leaves[step.leaf].Add({MakeQueueOrderKey(step.workload), kStep, &step.request});
  for (size_t i = 0; may_move && i < units.size(); ++i) {
    QueueOrderKey key = MakeQueueOrderKey(state.workload(units[i].workload));
    key.elastic_state = units[i].core ? 0 : 1;
    leaves[units[i].leaf].Add({std::move(key), i, &units[i].charge});
  }
  for (auto& [leaf, queue] : leaves) {
    queue.Sort();
    work += queue.size();
    // Turns matter between queues.
    const auto line = context.lines.find(leaf);
    if (leaves.size() > 1 && line != context.lines.end()) {
      queue.StandInLine(state, line->second, step.workload.id);
    }
  }
  return leaves;
}

}  // namespace

bool VictimSearch::IsAt(state::PodId id, const VictimUnit::Place& place) const {
  const state::PodRecord& pod = state_.pod(id);
  return pod.node == place.node && state::PartsOf(pod) == place.parts &&
         state_.PickOfPod(id) == place.zones;
}

bool VictimSearch::IsWhereItWas(const VictimUnit& unit) const {
  for (size_t i = 0; i < unit.pods.size(); ++i) {
    if (!IsAt(unit.pods[i], unit.places[i])) return false;
  }
  return true;
}

bool VictimSearch::Try(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                       const Rules& rules, const NodeSetPtr& within, Solution& solution) {
  what_if.Clear();
  solution.within = within;
  EvictAll(what_if, solution.units);
  placer_.AddWork(what_if.transaction().Mark());
  if (!MayFit(rules, within) || queues::CheckLimits(context.tree, context.live, step.leaf,
                                                    step.request, step.workload.preemptible)
                                    .has_value()) {
    return false;
  }
  if (MayMove(context, rules) && !NeedsNoMovedPod(what_if, step, within)) return false;
  if (!ReallocateFreed(what_if, context, step, rules, solution)) return false;
  for (size_t i = 0; i < solution.units.size(); ++i) {
    if ((rules.all_move || solution.units[i].must_move) && !solution.moved[i]) return false;
  }
  if (rules.refusal != nullptr &&
      rules.refusal(solution.units, solution.moved) != queues::ReclaimRefusal::kNone) {
    return false;
  }
  return context.keeps_bounds == nullptr ||
         context.keeps_bounds(step.leaf, step.workload, step.step.pods);
}

bool VictimSearch::NeedsNoMovedPod(Hypothesis& what_if, const SearchStep& step,
                                   const NodeSetPtr& within) {
  const bool attracted =
      std::any_of(step.step.pods.begin(), step.step.pods.end(), [&](state::PodId pod) {
        const auto& terms = state_.class_of(pod).spec->pod_affinity;
        return std::any_of(terms.begin(), terms.end(),
                           [](const model::PodAffinityTerm& term) { return term.weight == 0; });
      });
  if (!attracted) return true;
  const Hypothesis::Checkpoint mark = what_if.Mark();
  const bool placed =
      placer_.Place(what_if.transaction(), step.workload, step.step, Placer::Mode::kPromise, within)
          .placed;
  what_if.RollbackTo(mark);
  return placed;
}

bool VictimSearch::ReallocateFreed(Hypothesis& what_if, const SearchContext& context,
                                   const SearchStep& step, const Rules& rules, Solution& solution) {
  solution.moved.assign(solution.units.size(), false);
  uint64_t work = context.tree.size();  // the order of queues is made
  FreedQueues leaves =
      WhatWantsTheFreed(state_, context, step, solution.units, MayMove(context, rules), work);
  placer_.AddWork(work);
  auto next = [&](queues::QueueId leaf) -> const model::Resources* {
    const auto it = leaves.find(leaf);
    return it == leaves.end() ? nullptr : it->second.Request();
  };
  queues::QueueOrderIterator order(context.tree, context.live, context.shares, next,
                                   {.cluster_total = state_.total_for_queues()});
  std::set<state::WorkloadId> lost;
  bool placed = false;
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    const size_t which = leaves.at(*leaf).Take();
    if (which == kInLine) {
      placer_.AddWork(1);
    } else if (which == kStep) {
      // Victims that come first may have their part of a limit again.
      if (queues::CheckLimits(context.tree, context.live, step.leaf, step.request,
                              step.workload.preemptible)
              .has_value()) {
        return false;
      }
      placed = placer_
                   .Place(what_if.transaction(), step.workload, step.step, Placer::Mode::kPromise,
                          solution.within)
                   .placed;
      if (!placed) return false;
    } else {
      const VictimUnit& unit = solution.units[which];
      const state::Workload& workload = state_.workload(unit.workload);
      // Extras of a workload whose rest has no place have none.
      const auto mark = what_if.Mark();
      solution.moved[which] = !lost.contains(unit.workload) &&
                              !queues::CheckLimits(context.tree, context.live, unit.leaf,
                                                   unit.charge, workload.preemptible)
                                   .has_value() &&
                              placer_.Replace(what_if.transaction(), workload, unit.pods);
      if (solution.moved[which] && context.keeps_bounds != nullptr &&
          !context.keeps_bounds(unit.leaf, workload, unit.pods)) {
        what_if.RollbackTo(mark);
        solution.moved[which] = false;
      }
      // It has no other chance.
      if (!solution.moved[which] && (rules.all_move || unit.must_move)) return false;
      if (!solution.moved[which] && unit.core) lost.insert(unit.workload);
    }
    order.Changed(*leaf);
  }
  return placed;
}

std::vector<state::NodeId> VictimSearch::FindFreeNodes() {
  std::vector<state::NodeId> free;
  uint64_t looked_at = 0;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    ++looked_at;
    if (state_.node(id).exists && state_.node(id).Future(model::kScarcest) > 0) free.push_back(id);
  }
  placer_.AddWork(looked_at / kLooksAsOneFilter);
  return free;
}

bool VictimSearch::TryOnOneNode(Hypothesis& what_if, const SearchContext& context,
                                const SearchStep& step, Rules& rules, const SearchBudgets& budgets,
                                Solution& solution) {
  if (step.limit_blocked) return false;
  const VictimUnit& last = solution.units.back();
  if (last.pods.size() == 1 && solution.units.size() == 1) return false;  // the same as with all
  what_if.Clear();
  if (!rules.free_nodes.has_value()) rules.free_nodes = FindFreeNodes();
  // By name, as everything that is equal.
  std::map<uint64_t, state::NodeId> emptied;
  for (const VictimUnit::Place& place : last.places) {
    emptied.emplace(state_.node(place.node).name_rank, place.node);
  }
  for (const auto& [rank, emptied_node] : emptied) {
    const state::NodeId one = emptied_node;
    std::vector<state::NodeId> nodes = *rules.free_nodes;
    const auto place = std::lower_bound(
        nodes.begin(), nodes.end(), rank,
        [&](state::NodeId id, uint64_t other) { return state_.node(id).name_rank < other; });
    if (place == nodes.end() || *place != one) nodes.insert(place, one);
    Solution here;
    for (const VictimUnit& unit : solution.units) {
      if (std::any_of(unit.places.begin(), unit.places.end(),
                      [one](const VictimUnit::Place& p) { return p.node == one; })) {
        here.units.push_back(unit);
      }
    }
    if (!budgets.Choose(here.units)) continue;
    if (Try(what_if, context, step, rules, std::make_shared<NodeSet>(std::move(nodes)), here)) {
      solution = std::move(here);
      return true;
    }
  }
  return false;
}

bool VictimSearch::ReprieveUnmoved(Hypothesis& what_if, const SearchContext& context,
                                   const SearchStep& step, const Rules& rules, Solution& solution) {
  Solution fewer;
  bool spared = false;
  for (size_t i = 0; i < solution.units.size(); ++i) {
    VictimUnit unit = solution.units[i];
    if (solution.moved[i]) {
      VictimUnit kept = unit;
      kept.pods.clear();
      kept.places.clear();
      for (size_t j = 0; j < unit.pods.size(); ++j) {
        if (IsAt(unit.pods[j], unit.places[j])) {
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
  if (!spared || fewer.units.empty()) return true;
  if (Try(what_if, context, step, rules, solution.within, fewer)) {
    solution = std::move(fewer);
    return true;
  }
  return Try(what_if, context, step, rules, solution.within, solution);
}

bool VictimSearch::Reprieve(Hypothesis& what_if, const SearchContext& context,
                            const SearchStep& step, const Rules& rules, Solution& solution) {
  constexpr size_t kMostUnits = 32;  // beyond it the search for spared victims costs too much
  auto attempt = [&](std::vector<VictimUnit> fewer) {
    Solution other{std::move(fewer), {}, nullptr};
    if (!Try(what_if, context, step, rules, solution.within, other)) return false;
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
  return Try(what_if, context, step, rules, solution.within, solution);
}

void VictimSearch::Report(const SearchContext& context, const Solution& solution,
                          SearchOutcome& outcome) const {
  outcome.found = true;
  BudgetSpending spending(state_);
  for (size_t i = 0; i < solution.units.size(); ++i) {
    const VictimUnit& unit = solution.units[i];
    for (size_t j = 0; j < unit.pods.size(); ++j) {
      const state::PodId pod = unit.pods[j];
      outcome.victims.push_back({pod, unit.places[j],
                                 solution.moved[i] ? state_.pod(pod).node : state::kNoId,
                                 context.against_budgets && spending.Exceeds(state_.pod(pod))});
    }
  }
}

bool VictimSearch::Solve(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                         Rules& rules, const SearchBudgets& budgets,
                         const std::vector<VictimUnit>& units, std::vector<bool>& returned,
                         SearchOutcome& outcome) {
  Solution attempt{units, {}, nullptr};
  returned.assign(units.size(), false);
  if (!TryOnOneNode(what_if, context, step, rules, budgets, attempt)) {
    if (!budgets.Choose(attempt.units)) return false;
    if (!Try(what_if, context, step, rules, nullptr, attempt)) {
      if (attempt.units.size() < units.size() || attempt.moved.empty()) return false;
      for (size_t i = 0; i < units.size(); ++i) {
        returned[i] = attempt.moved[i] && IsWhereItWas(units[i]);
      }
      return false;
    }
  }
  if (!Reprieve(what_if, context, step, rules, attempt) ||
      !ReprieveUnmoved(what_if, context, step, rules, attempt)) {
    return false;
  }
  Report(context, attempt, outcome);
  return true;
}

}  // namespace fairlead::engine
