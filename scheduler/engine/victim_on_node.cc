// The part of VictimSearch that evicts from one node, as kube-scheduler does (node_victims.h).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "queues/min_runtime.h"
#include "scheduler/engine/victim_search.h"

namespace fairlead::engine {

bool VictimSearch::EvictsFromOneNode(const SearchContext& context, const SearchStep& step) {
  return step.workload.priority_rules == state::PriorityRules::kKubernetes &&
         step.step.pods.size() == 1 && !step.limit_blocked &&
         queues::PreemptMinRuntime(context.tree, step.leaf, context.options.preempt_min_runtime) <=
             absl::ZeroDuration();
}

bool VictimSearch::EvictFrom(state::Transaction& txn, const SearchContext& context,
                             const SearchStep& step, const NodePreemptor& preemptor,
                             state::NodeId node, SearchOutcome& outcome) {
  Hypothesis what_if(txn, state_, framework_, placer_.gpu_order());
  const auto is_spared = [&](const state::PodRecord& pod) {
    return context.moved.contains(pod.id) || context.refusals.Stands(state_, pod, context.now);
  };
  uint64_t tried = 0;
  const auto found = FindNodeVictims(state_, what_if, preemptor, node, is_spared, tried);
  placer_.AddWork(tried);
  if (!found.has_value()) return false;
  if (found->cost.violations > 0 && !context.against_budgets) {
    outcome.spared = true;
    return false;
  }
  std::vector<Victim> victims;
  BudgetSpending spending(state_);
  for (const std::vector<state::PodId>* pods : {&found->pods, &found->promised}) {
    for (const state::PodId id : *pods) {
      const state::PodRecord& pod = state_.pod(id);
      victims.push_back({id, PlaceOf(state_, pod), state::kNoId, spending.Exceeds(pod)});
    }
  }
  for (const Victim& victim : victims) what_if.Evict(victim.pod);
  const auto there = std::make_shared<NodeSet>(std::vector<state::NodeId>{node});
  if (!placer_.Place(what_if.transaction(), step.workload, step.step, Placer::Mode::kPromise, there)
           .placed) {
    return false;
  }
  if (context.keeps_bounds != nullptr &&
      !context.keeps_bounds(step.leaf, step.workload, step.step.pods)) {
    return false;
  }
  what_if.Keep();
  outcome.found = true;
  outcome.victims = std::move(victims);
  return true;
}

SearchOutcome VictimSearch::PreemptOnOneNode(state::Transaction& txn, const SearchContext& context,
                                             const SearchStep& step) {
  SearchOutcome outcome;
  const state::PodRecord& pod = state_.pod(step.step.pods.front());
  const NodePreemptor preemptor{pod.pod_class, step.workload.priority,
                                std::string(context.tree.Name(step.leaf))};
  const NodePreemption::Candidates* candidates = nullptr;
  {
    Hypothesis what_if(txn, state_, framework_, placer_.gpu_order());
    uint64_t tried = 0;
    candidates =
        &on_nodes_.CandidatesFor(what_if, preemptor, StableHash().Add(pod.uid).value(), tried);
    placer_.AddWork(tried);
  }
  for (const NodePreemption::Candidate& candidate : *candidates) {
    if (candidate.cost.violations > 0 && !context.against_budgets) {
      outcome.spared = true;
      break;
    }
    outcome.out_of_work = placer_.work() > context.work_end;
    if (outcome.out_of_work) break;
    if (EvictFrom(txn, context, step, preemptor, candidate.node, outcome)) {
      outcome.spared = false;
      return outcome;
    }
  }
  if (outcome.spared) {
    outcome.details.emplace_back(
        "preemption: every choice of victims has pods that PodDisruptionBudgets protect");
  } else if (!outcome.out_of_work) {
    outcome.details.emplace_back("preemption: no node has room without its pods of lower priority");
  }
  return outcome;
}

}  // namespace fairlead::engine
