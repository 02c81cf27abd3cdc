#include "scheduler/engine/victim_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "queues/job_order.h"
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

std::vector<bool> MustMove(const std::vector<VictimUnit>& units) {
  std::vector<bool> moved;
  moved.reserve(units.size());
  for (const VictimUnit& unit : units) moved.push_back(unit.must_move);
  return moved;
}

// Filter evaluations in the time of which a unit is tested for joining the others. The first ones
// of a search are not counted: however small the budget, a search may make one try.
constexpr uint64_t kWorkOfJoin = 4, kFreeJoins = 64;

// Pods that start one after another may be moved one after another: one cycle a second is enough.
absl::Time NextSecond(absl::Time time) {
  return absl::UnixEpoch() + absl::Ceil(time - absl::UnixEpoch(), absl::Seconds(1));
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

std::string VictimSearch::CheckConsistency() const {
  std::string wrong = index_.CheckConsistency();
  if (wrong.empty()) wrong = fits_.CheckConsistency();
  return wrong.empty() ? on_nodes_.CheckConsistency() : wrong;
}

void VictimSearch::ExplainSpared(const Rules& rules, const SearchBudgets& budgets,
                                 const VictimWalks& walks, SearchOutcome& outcome) {
  outcome.spared = budgets.any_spared();
  budgets.Explain(rules.name, outcome.details);
  int64_t refused = 0;
  int64_t by_extenders = 0;
  std::set<std::string> by;
  for (const auto& [leaf, walk] : walks) {
    refused += walk.refused() - walk.refused_by_extenders();
    by_extenders += walk.refused_by_extenders();
    by.insert(walk.refusing().begin(), walk.refusing().end());
  }
  if (by_extenders > 0) {
    outcome.details.push_back(absl::StrCat(rules.name, ", possible victims: ", by_extenders,
                                           " refused by a scheduler extender"));
  }
  if (refused == 0) return;
  outcome.details.push_back(
      absl::StrCat(rules.name, ", possible victims: ", refused, " refused ",
                   by.empty() ? "by the API server a moment ago"
                              : absl::StrCat("by PodDisruptionBudget ", absl::StrJoin(by, ", "))));
}

// The units taken so far in one search, and the walk that they come from.
class VictimSearch::PotentialVictims {
 public:
  PotentialVictims(const SearchContext& context, const model::Resources& total, VictimWalks& walks)
      : walks_(walks),
        order_(context.tree, context.ledger, context.shares,
               [&walks](queues::QueueId queue) -> const model::Resources* {
                 const auto it = walks.find(queue);
                 const VictimUnit* unit = it == walks.end() ? nullptr : it->second.Peek();
                 return unit == nullptr ? nullptr : &unit->charge;
               },
               {.victims = true, .cluster_total = total}) {}

  // The walk whose first unit has its turn; null at the end.
  LeafVictims* Next() {
    const std::optional<queues::QueueId> leaf = order_.Next();
    return leaf.has_value() ? &walks_.at(*leaf) : nullptr;
  }
  void Skip(LeafVictims& walk) {
    const queues::QueueId leaf = walk.Take().leaf;
    order_.Changed(leaf);
  }
  // No unit of the workload whose turn it is.
  void SkipWorkload(LeafVictims& walk) {
    const queues::QueueId leaf = walk.Peek()->leaf;
    walk.LeaveOut(walk.Peek()->workload);
    order_.Changed(leaf);
  }
  void Close(LeafVictims& walk) {
    const queues::QueueId leaf = walk.Peek()->leaf;
    walk.Close();
    order_.Changed(leaf);
  }
  void Take(LeafVictims& walk, bool must_move) {
    units.push_back(walk.Take());
    units.back().must_move = must_move;
    order_.Picked(units.back().leaf, units.back().charge);
  }
  // Why the unit may not join those taken, by these rules; if it may, it has to be taken next, and
  // not as one that must move.
  queues::ReclaimRefusal Join(const Rules& rules, const VictimUnit& unit) {
    if (!trial_.has_value() && !trial_failed_) StartTrial(rules);
    if (!trial_failed_) return trial_->Add(unit.leaf, unit.charge).refusal;
    units.push_back(unit);
    const queues::ReclaimRefusal refusal = rules.refusal(units, MustMove(units));
    units.pop_back();
    return refusal;
  }
  // Takes back those marked, and what else was taken of their workloads after them: the core goes
  // last, so it does not go where an extra pod stays. Nothing more of those workloads is taken, and
  // their queues have the more to give.
  void LeaveOut(const std::vector<bool>& marked) {
    if (std::find(marked.begin(), marked.end(), true) == marked.end()) return;
    std::set<state::WorkloadId> out;
    std::vector<VictimUnit> kept;
    for (size_t i = 0; i < units.size(); ++i) {
      VictimUnit& unit = units[i];
      if (marked[i]) out.insert(unit.workload);
      if (!out.contains(unit.workload)) {
        kept.push_back(std::move(unit));
        continue;
      }
      LeafVictims& walk = walks_.at(unit.leaf);
      walk.LeaveOut(unit.workload);
      walk.Reopen();
      model::Resources back;
      back -= unit.charge;
      order_.Picked(unit.leaf, back);
    }
    units = std::move(kept);
    trial_.reset();
  }

  std::vector<VictimUnit> units;

 private:
  void StartTrial(const Rules& rules) {
    trial_.emplace(*rules.rights, *rules.reclaimer);
    for (const VictimUnit& unit : units) {
      if (unit.must_move || trial_->Add(unit.leaf, unit.charge).allowed()) continue;
      // What is left after some were taken back would not have been taken in this order: all units
      // are tested with each one more.
      trial_failed_ = true;
      return;
    }
  }

  VictimWalks& walks_;
  queues::QueueOrderIterator order_;
  std::optional<queues::ReclaimTrial> trial_;  // of the units, once it is asked for
  bool trial_failed_ = false;
};

VictimSearch::Join VictimSearch::MayJoin(const Rules& rules, PotentialVictims& taken,
                                         const VictimUnit& unit) {
  using queues::ReclaimRefusal;
  if (rules.refusal == nullptr) return Join::kTaken;
  const ReclaimRefusal refusal = taken.Join(rules, unit);
  if (refusal == ReclaimRefusal::kNone) return Join::kTaken;
  if (rules.others_move) {
    const bool movable = state_.workload(unit.workload).IsMovable() && !AnyStays(state_, unit.pods);
    return movable ? Join::kMoved : Join::kNotThis;
  }
  return refusal == ReclaimRefusal::kGivesNoExcess ? Join::kNotThis : Join::kNoMore;
}

bool VictimSearch::Search(state::Transaction& txn, const SearchContext& context,
                          const SearchStep& step, Rules& rules, VictimWalks& walks,
                          SearchOutcome& outcome) {
  PotentialVictims taken(context, state_.total_for_queues(), walks);
  Hypothesis what_if(txn, state_, framework_, placer_.parts_order());
  rules.wanted = fits_.WantedBy(step.step.pods);
  rules.free_nodes.reset();
  const bool some_stay = !rules.all_move && !rules.others_move;
  std::set<state::WorkloadId> workloads;
  int64_t victims = 0;
  size_t next_try = 0;
  bool refused = false;
  bool no_excess = false;
  SearchBudgets budgets(state_, context.against_budgets);
  std::vector<bool> returned;
  uint64_t joins = 0;
  while (LeafVictims* walk = taken.Next()) {
    const VictimUnit& unit = *walk->Peek();
    if (!Helps(unit, step) || !budgets.Admits(unit)) {
      taken.Skip(*walk);
      continue;
    }
    outcome.out_of_work = placer_.work() > context.work_end;
    if (outcome.out_of_work || victims >= context.options.max_victims_per_search) {
      outcome.details.push_back(
          absl::StrCat(rules.name, ": stopped after possible victims: ", victims, " (",
                       outcome.out_of_work ? "max_search_work" : "max_victims_per_search", ")"));
      break;
    }
    if (rules.max_workloads != model::kUnlimited && !workloads.contains(unit.workload) &&
        static_cast<int64_t>(workloads.size()) >= rules.max_workloads) {
      outcome.details.push_back(absl::StrCat(
          rules.name, ": stopped after moved workloads: ", workloads.size(), " (its maximum)"));
      break;
    }
    if (++joins > kFreeJoins) placer_.AddWork(kWorkOfJoin);
    const Join join = MayJoin(rules, taken, unit);
    if (join == Join::kNotThis) {
      no_excess = true;
      ++victims;
      taken.SkipWorkload(*walk);
      continue;
    }
    if (join == Join::kNoMore) {
      refused = true;
      taken.Close(*walk);
      continue;
    }
    workloads.insert(unit.workload);
    taken.Take(*walk, /*must_move=*/join == Join::kMoved);
    for (state::PodId pod : taken.units.back().pods) {
      what_if.Evict(pod);
      ++victims;
    }
    if (taken.units.size() < next_try) continue;
    // Not counted, either.
    uint64_t walked = 0;
    if (!fits_.Possible(rules.wanted, nullptr, walked)) continue;
    if (Solve(what_if, context, step, rules, budgets, taken.units, returned, outcome)) {
      what_if.Keep();
      return true;
    }
    if (some_stay) taken.LeaveOut(returned);
    // Long lists are tried less often: what one unit more changes is little.
    if (taken.units.size() > 32) next_try = taken.units.size() + taken.units.size() / 8;
    // Back to nothing but the evictions.
    what_if.Clear();
    EvictAll(what_if, taken.units);
  }
  what_if.Clear();
  ExplainSpared(rules, budgets, walks, outcome);
  if (refused && outcome.details.empty()) {
    outcome.details.push_back(
        absl::StrCat(rules.name, ": taking more would leave the other queue below its own share"));
  } else if (no_excess && outcome.details.empty()) {
    outcome.details.push_back(absl::StrCat(
        rules.name, ": other queues exceed their shares only of resources that are not requested"));
  }
  return false;
}

bool VictimSearch::MayFit(const Rules& rules, const NodeSetPtr& within) {
  uint64_t work = 0;
  const bool possible = fits_.Possible(rules.wanted, within.get(), work);
  placer_.AddWork(work);
  return possible;
}

bool VictimSearch::Helps(const VictimUnit& unit, const SearchStep& step) const {
  if (step.limit_blocked) return true;
  state::PodClassId last = state::kNoId;
  for (state::PodId wanted_pod : step.step.pods) {
    const state::PodClassId id = state_.pod(wanted_pod).pod_class;
    if (id == last) continue;
    last = id;
    for (state::PodId victim : unit.pods) {
      if (feasibility_.Suits(id, state_.pod(victim).node)) return true;
    }
  }
  return false;
}

bool VictimSearch::MayPreempt(queues::QueueId leaf, int32_t priority) {
  index_.CatchUp();
  const auto found = index_.leaves().find(leaf);
  return found != index_.leaves().end() && -found->second.begin()->minus_priority < priority;
}

bool VictimSearch::MayReclaim(const queues::ReclaimContext& rights,
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
  // None of lower priority, protected or not: there is nothing to say.
  if (-leaf->second.begin()->minus_priority >= step.workload.priority) return outcome;
  if (EvictsFromOneNode(context, step)) return PreemptOnOneNode(txn, context, step);
  VictimFilter filter;
  filter.now = context.now;
  filter.moved = &context.moved;
  filter.fresh = &context.fresh;
  filter.refusals = &context.refusals;
  filter.preemptors = ClassesOf(state_, step.step.pods);
  filter.protection =
      queues::PreemptMinRuntime(context.tree, step.leaf, context.options.preempt_min_runtime);
  filter.below_priority = step.workload.priority;
  VictimWalks walks;
  walks.emplace(step.leaf, LeafVictims(state_, tracker_, leaf->second, step.leaf, filter));
  Rules rules;
  rules.name = "preemption";
  if (Search(txn, context, step, rules, walks, outcome)) return outcome;
  const LeafVictims::Protection kept = walks.begin()->second.Protected();
  outcome.wake_at = kept.first_end;
  if (kept.workloads > 0) {
    outcome.details.push_back(absl::StrCat(
        "preemption: lower-priority workloads within minimum runtime: ", kept.workloads));
  }
  if (outcome.details.empty()) {
    outcome.details.push_back(
        "preemption: evicting every lower-priority workload would not free enough");
  }
  return outcome;
}

SearchOutcome VictimSearch::Reclaim(state::Transaction& txn, const SearchContext& context,
                                    const SearchStep& step) {
  SearchOutcome outcome;
  const queues::ReclaimContext rights =
      ReclaimRights(context.options, context.tree, context.ledger, context.shares);
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
  rules.rights = &rights;
  rules.reclaimer = &reclaimer;
  rules.refusal = [&](const std::vector<VictimUnit>& units, const std::vector<bool>& moved) {
    const std::vector<queues::VictimQueue> victims = ByQueue(units, moved);
    // Moving others about is for queues in need only: else one that has plenty could disturb all
    // (KAI's pull request 1565).
    if (victims.empty() && !WithinQuota(context, step)) {
      return queues::ReclaimRefusal::kOverQuota;
    }
    return queues::Reclaimable(rights, reclaimer, victims).refusal;
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
                               const SearchStep& step, Rules& rules,
                               const queues::ReclaimContext& rights,
                               const queues::Reclaimer& reclaimer, SearchOutcome& outcome) {
  VictimWalks walks;
  bool others = false;
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (leaf == step.leaf || !context.tree.Usable(leaf)) continue;
    others = true;
    if (!rules.others_move && !queues::MayEverReclaimFrom(rights, reclaimer, leaf)) continue;
    VictimFilter filter;
    filter.now = context.now;
    filter.moved = &context.moved;
    filter.fresh = &context.fresh;
    filter.refusals = &context.refusals;
    filter.preemptors = ClassesOf(state_, step.step.pods);
    filter.protection =
        queues::ReclaimMinRuntime(context.tree, context.options.reclaim_resolve, step.leaf, leaf,
                                  context.options.reclaim_min_runtime);
    // Pods of it that were started in another queue are charged there.
    filter.except = step.workload.id;
    walks.emplace(leaf, LeafVictims(state_, tracker_, workloads, leaf, filter));
  }
  if (walks.empty()) {
    if (others) {
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
    outcome.details.push_back(absl::StrCat("reclaim: workloads within minimum runtime: ", kept));
  } else if (outcome.details.empty()) {
    outcome.details.push_back("reclaim: evicting every candidate would not free enough");
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
  filter.preemptors = ClassesOf(state_, step.step.pods);
  filter.moves = &context.moves;
  filter.movable_only = true;
  filter.except = step.workload.id;
  VictimWalks walks;
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (context.tree.Usable(leaf)) {
      walks.emplace(leaf, LeafVictims(state_, tracker_, workloads, leaf, filter));
    }
  }
  if (walks.empty()) return outcome;
  Rules rules;
  rules.name = "consolidation";
  rules.all_move = true;
  rules.max_workloads = context.options.max_consolidation_workloads;
  if (Search(txn, context, step, rules, walks, outcome)) return outcome;
  absl::Time first_movable = absl::InfiniteFuture();
  for (const auto& [leaf, walk] : walks) {
    first_movable = std::min(first_movable, walk.first_movable());
  }
  outcome.wake_at = NextSecond(first_movable);
  return outcome;
}

}  // namespace fairlead::engine
