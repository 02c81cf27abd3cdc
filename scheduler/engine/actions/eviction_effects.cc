#include "scheduler/engine/actions/eviction_effects.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using verdict::Code;

// The promise of a victim that is promised its place only: it moves, or is taken back.
void ChangePromise(CycleContext& c, const Victim& victim) {
  const state::Workload& workload = c.in.state.workload(c.in.state.pod(victim.pod).workload);
  Outcome& outcome = c.outcomes.At(workload.id);
  const auto promise = std::find_if(outcome.promises.begin(), outcome.promises.end(),
                                    [&](const auto& p) { return p.pod == victim.pod; });
  if (victim.moves_to != state::kNoId) {
    promise->node = victim.moves_to;
    return;
  }
  outcome.promises.erase(promise);
  c.pipelined.Remove(victim.pod);
  if (!outcome.promises.empty()) return;
  outcome.code = Code::kInsufficientCapacity;
  if (outcome.step.pods.empty()) {
    outcome.step = NextStep(c.in.state, workload);
    outcome.step_request = c.ChargeOf(outcome.step.pods);
    outcome.failed_pod = victim.pod;
  }
}

Eviction MakeEviction(CycleContext& c, const EvictionPolicy& policy, const Outcome& outcome,
                      const queues::QueueLedger& before, const Victim& victim) {
  const state::Workload& workload = c.in.state.workload(outcome.workload);
  Eviction eviction;
  eviction.pod = victim.pod;
  eviction.for_workload = model::Key(workload.ns, workload.name);
  eviction.moves_to = victim.moves_to;
  eviction.against_budget = victim.against_budget;
  eviction.action = std::string(policy.Name());
  eviction.message =
      policy.Reason(outcome, before, c.in.state.workload(c.in.state.pod(victim.pod).workload));
  if (victim.moves_to != state::kNoId) {
    absl::StrAppend(&eviction.message, "; its new place is on node ",
                    c.in.state.node(victim.moves_to).name());
  }
  return eviction;
}

void Withdraw(CycleContext& c, const Victim& victim, const std::string& winner) {
  std::vector<Binding>& bindings = c.decisions.bindings;
  const auto decided =
      std::find_if(bindings.rbegin(), bindings.rend(),
                   [&](const Binding& binding) { return binding.pod == victim.pod; });
  bindings.erase(std::next(decided).base());
  c.fresh.erase(victim.pod);
  c.decisions.withdrawn.push_back({victim.pod, victim.from.node});
  const state::Workload& workload = c.in.state.workload(c.in.state.pod(victim.pod).workload);
  const queues::QueueId leaf = c.in.tree.Find(workload.queue).value_or(PendingIndex::kNoQueue);
  if (victim.moves_to != state::kNoId) {
    c.RecordPromises(workload, leaf, {victim.pod}, /*victims_chosen=*/true);
    return;
  }
  state::WithdrawBinding(c.in.state, victim.pod);
  c.in.eviction_backoff.OnPlaceLost(workload, c.in.now);
  const bool added = !c.outcomes.Contains(workload.id);
  Outcome& outcome = c.outcomes.Of(workload, leaf);
  if (added) c.outcomes.MarkLate(outcome);
  if (outcome.code == Code::kNone) {
    outcome.code = Code::kInsufficientCapacity;
    outcome.details.push_back(absl::StrCat("its place went to workload ", winner));
  }
  outcome.step = NextStep(c.in.state, workload);
  outcome.step_request = c.ChargeOf(outcome.step.pods);
  outcome.failed_pod = victim.pod;
  outcome.bound_to_topology = BoundToTopology(workload);
}

}  // namespace

std::vector<Victim> RecordVictims(CycleContext& c, const EvictionPolicy& policy,
                                  const Outcome& outcome, const queues::QueueLedger& before,
                                  const std::vector<Victim>& victims) {
  std::vector<Victim> fresh;
  const uint64_t set = c.decisions.NextEvictionSet();
  for (const Victim& victim : victims) {
    if (victim.from.promised) {
      ChangePromise(c, victim);
    } else if (victim.from.fresh) {
      fresh.push_back(victim);
    } else {
      c.in.state.ChargeBudgets(victim.pod);
      Eviction eviction = MakeEviction(c, policy, outcome, before, victim);
      eviction.set = set;
      c.decisions.evictions.push_back(std::move(eviction));
      if (victim.moves_to != state::kNoId) c.pipelined.AddMoved(victim);
    }
  }
  return fresh;
}

void WithdrawBindings(CycleContext& c, const std::vector<Victim>& victims,
                      state::WorkloadId winner) {
  if (victims.empty()) return;
  const state::Workload& workload = c.in.state.workload(winner);
  const std::string name = model::Key(workload.ns, workload.name);
  for (const Victim& victim : victims) Withdraw(c, victim, name);
}

}  // namespace fairlead::engine
