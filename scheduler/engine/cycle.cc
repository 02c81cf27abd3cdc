#include "scheduler/engine/cycle.h"

#include <utility>

#include "scheduler/engine/actions/allocate.h"
#include "scheduler/engine/actions/consolidate.h"
#include "scheduler/engine/actions/demand.h"
#include "scheduler/engine/actions/post_filter.h"
#include "scheduler/engine/actions/preempt.h"
#include "scheduler/engine/actions/reclaim.h"
#include "scheduler/engine/actions/stale_gangs.h"

namespace fairlead::engine {
namespace {

// What the workloads still lack, for the reservations of the next cycle (reservation.h).
void UpdateReservations(CycleContext& c) {
  if (!c.in.options.reservations.on) return;
  std::vector<Reservations::UnmetRequest> lacks;
  for (const Outcome& outcome : c.outcomes.rows()) {
    if (outcome.leaf == PendingIndex::kNoQueue || outcome.step.pods.empty()) continue;
    Reservations::UnmetRequest lack;
    lack.workload = outcome.workload;
    lack.leaf = outcome.leaf;
    lack.pods = &outcome.step.pods;
    lack.request = &outcome.step_request;
    lack.only_room = outcome.code == verdict::Code::kInsufficientCapacity &&
                     outcome.promises.empty() && !outcome.behind && outcome.keeper.empty();
    lack.may_reserve = !outcome.bound_to_topology && !outcome.step.extra;
    if (outcome.code == verdict::Code::kWaitingForVictims) {
      for (const Waiting::PodPromise& promise : outcome.promises) {
        lack.promised.emplace_back(promise.pod, promise.node);
      }
    }
    lacks.push_back(std::move(lack));
  }
  c.in.reservations.Update(lacks);
  for (const state::WorkloadId owner : c.in.reservations.Owners()) {
    c.outcomes.At(owner).details.push_back(c.in.reservations.Describe(owner));
  }
}

}  // namespace

Actions MakeActions(const EngineOptions& options, bool post_filters) {
  Actions actions;
  if (options.allocate) {
    actions.push_back(std::make_unique<Allocate>());
  } else {
    actions.push_back(std::make_unique<QueueUp>());
  }
  if (options.consolidation && !options.spread_parts) {
    actions.push_back(std::make_unique<Consolidate>());
  }
  // Where no choice of victims respects the budgets, the eviction API decides.
  for (const bool against_budgets : {false, true}) {
    if (options.reclaim) actions.push_back(std::make_unique<Reclaim>(against_budgets));
    const auto propose = [&](PostFilter::Turn turn) {
      if (post_filters) actions.push_back(std::make_unique<PostFilter>(turn, against_budgets));
    };
    propose(PostFilter::Turn::kFirst);
    if (options.preempt) actions.push_back(std::make_unique<Preempt>(against_budgets));
    propose(PostFilter::Turn::kLast);
  }
  if (options.stale_gangs) actions.push_back(std::make_unique<StaleGangEviction>());
  actions.push_back(std::make_unique<Demand>());
  return actions;
}

void RunCycle(const Actions& actions, bool may_evict, CycleContext& c) {
  bool evicting = false;
  for (const std::unique_ptr<const Action>& action : actions) {
    if (action->Evicts()) {
      if (!may_evict) continue;
      if (!std::exchange(evicting, true)) {
        c.in.budget.Begin(c.in.options.max_search_work);
      }
    }
    action->Execute(c);
  }
  if (may_evict) {
    // Of what had no turn nothing new is known.
    const bool whole = !c.in.walk_budget.spent();
    c.in.budget.End(whole);
    c.in.answers.End(whole);
  }
  c.outcomes.AssignPositions();
  c.pipelined.Discard(c.in.state);
  UpdateReservations(c);
}

}  // namespace fairlead::engine
