// The part of VictimSearch that evicts from one node, as kube-scheduler does (node_victims.h).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "queues/min_runtime.h"
#include "scheduler/engine/victim_search.h"
#include "scheduler/framework/scheduling_points.h"

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
  Hypothesis what_if(txn, state_, framework_, placer_.parts_order());
  const std::vector<state::PodClassId> preemptors = ClassesOf(state_, step.step.pods);
  const auto is_spared = [&](const state::PodRecord& pod) {
    return context.moved.contains(pod.id) ||
           context.refusals.Stands(state_, pod, context.now, preemptors);
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
  if (!EvictThere(context, step, what_if, victims, node)) return false;
  outcome.found = true;
  outcome.victims = std::move(victims);
  return true;
}

bool VictimSearch::EvictThere(const SearchContext& context, const SearchStep& step,
                              Hypothesis& what_if, const std::vector<Victim>& victims,
                              state::NodeId node) {
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
  return true;
}

std::optional<std::vector<Victim>> VictimSearch::Proposed(const SearchContext& context,
                                                          const SearchStep& step,
                                                          const std::vector<state::PodId>& pods,
                                                          bool& spared) const {
  const std::vector<state::PodClassId> preemptors = ClassesOf(state_, step.step.pods);
  const absl::Duration protection =
      queues::PreemptMinRuntime(context.tree, step.leaf, context.options.preempt_min_runtime);
  std::vector<state::PodId> all;
  for (const state::PodId id : pods) {
    if (id == state::kNoId || state_.pod(id).id != id) return std::nullopt;
    if (state_.pod(id).workload == state::kNoId) return std::nullopt;
    const state::Workload& workload = state_.workload(state_.pod(id).workload);
    if (!workload.preemptible || workload.id == step.workload.id ||
        queues::IsProtected(context.now, state_.StartOf(workload), protection)) {
      return std::nullopt;
    }
    const std::vector<state::PodId> together = PodsThatGoWith(state_, id);
    if (together.empty()) return std::nullopt;
    for (const state::PodId each : together) {
      if (!absl::c_linear_search(all, each)) all.push_back(each);
    }
  }
  BudgetSpending spending(state_);
  std::vector<Victim> victims;
  for (const state::PodId id : all) {
    const state::PodRecord& pod = state_.pod(id);
    const bool runs =
        pod.status == state::PodStatus::kBound || pod.status == state::PodStatus::kRunning;
    if (!runs || pod.terminating || state_.QueueOf(pod) != context.tree.Name(step.leaf) ||
        context.moved.contains(id) || context.fresh.contains(id) ||
        context.refusals.Stands(state_, pod, context.now, preemptors) ||
        state_.BudgetsOf(pod).size() > 1) {
      return std::nullopt;
    }
    victims.push_back({id, PlaceOf(state_, pod), state::kNoId, spending.Exceeds(pod)});
    if (!victims.back().against_budget || context.against_budgets) continue;
    spared = true;
    return std::nullopt;
  }
  return victims;
}

SearchOutcome VictimSearch::PostFilter(
    state::Transaction& txn, const SearchContext& context, const SearchStep& step,
    const std::vector<const framework::PostFilterPlugin*>& plugins, std::string& plugin) {
  SearchOutcome outcome;
  const state::PodRecord& pod = state_.pod(step.step.pods.front());
  const framework::Context question{state_, state_.pod_class(pod.pod_class), pod.pod_class,
                                    framework::Capacity::kFuture};
  for (const framework::PostFilterPlugin* each : plugins) {
    for (const auto& [node, pods] : each->PostFilter(question, pod)) {
      outcome.out_of_work = placer_.work() > context.work_end;
      if (outcome.out_of_work) return outcome;
      if (node == state::kNoId || !state_.node(node).exists) continue;
      std::optional<std::vector<Victim>> victims = Proposed(context, step, pods, outcome.spared);
      if (!victims.has_value()) continue;
      Hypothesis what_if(txn, state_, framework_, placer_.parts_order());
      if (!EvictThere(context, step, what_if, *victims, node)) continue;
      plugin = std::string(each->Name());
      outcome.found = true;
      outcome.spared = false;
      outcome.victims = *std::move(victims);
      return outcome;
    }
    outcome.details.push_back(absl::StrCat(each->Name(), ": proposed no pods that may go"));
  }
  return outcome;
}

SearchOutcome VictimSearch::PreemptOnOneNode(state::Transaction& txn, const SearchContext& context,
                                             const SearchStep& step) {
  SearchOutcome outcome;
  const state::PodRecord& pod = state_.pod(step.step.pods.front());
  const NodePreemptor preemptor{pod.pod_class, step.workload.priority,
                                std::string(context.tree.Name(step.leaf))};
  const NodePreemption::Candidates* candidates = nullptr;
  {
    Hypothesis what_if(txn, state_, framework_, placer_.parts_order());
    const uint64_t seed =
        UsedSeed(context.options.derived_names.get(), StableHash().Add(pod.uid).value());
    uint64_t tried = 0;
    candidates = &on_nodes_.CandidatesFor(what_if, preemptor, seed, tried);
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
