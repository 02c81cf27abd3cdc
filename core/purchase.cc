// The input of DecisionLoop to the scale hook, and its handling of the answer.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/decision_loop_impl.h"
#include "core/engine_placement.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

using verdict::Code;

// True if other pods do not affect whether its pods fit on a node that does not exist yet.
bool DependsOnItselfAlone(const hook::DemandItem& item) {
  return std::all_of(item.classes.begin(), item.classes.end(), [](const auto& pod_class) {
    const model::PodSpec& spec = *pod_class.spec;
    return spec.pod_affinity.empty() && spec.pod_anti_affinity.empty() &&
           spec.topology_spread.empty() && spec.labels_for_affinity.empty();
  });
}

}  // namespace

void DecisionLoop::Impl::PublishOfferedLabels() {
  if (!options.hook.enabled || std::exchange(offers_told, true)) return;
  engine->SetOfferedLabels(hook.LabelsOnOffer(ValidPools()));
  engine->SetOfferedNodes(hook.NodesOnOffer(ValidPools()));
}

bool DecisionLoop::Impl::Withdraw(const std::vector<std::string>& names,
                                  const std::vector<const model::NodePool*>& valid_pools) {
  state::Change change;
  for (const std::string& name : names) change |= nodes.RequestChanged(name, valid_pools);
  return change.Any();
}

bool DecisionLoop::Impl::HookWouldSayTheSame(const hook::Demand& demand, absl::Time now) const {
  return memo.valid && now < memo.wake_at && memo.machines_version == hook.machines().version() &&
         memo.uses_version == nodes.uses_version() && memo.demand == demand &&
         std::all_of(demand.begin(), demand.end(), DependsOnItselfAlone);
}

bool DecisionLoop::Impl::RunHook(std::vector<engine::Waiting>& entries, absl::Time now,
                                 StepResult& result) {
  std::set<state::NodeId> promised;
  EnginePlacement::Promises promises;
  for (const engine::Waiting& entry : entries) {
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node == state::kNoId) continue;
      promised.insert(pod.node);
      promises.emplace_back(pod.pod, pod.node);
    }
  }
  for (const state::NodeId node : engine->ReservedNodes()) promised.insert(node);
  hook::Demand demand = DemandOf(state, entries);
  if (stale()) {
    // The last answer is kept, so that verdicts do not change; its timers wait.
    if (memo.demand == demand) TakeOutcomes(memo.outcomes, entries);
    return false;
  }
  const std::vector<hook::NodeUse>& uses = nodes.Uses(promised, now);
  if (HookWouldSayTheSame(demand, now)) {
    wake_at = std::min(wake_at, memo.wake_at);
    TakeOutcomes(memo.outcomes, entries);
    return false;
  }
  hook::StepInput input;
  input.now = now;
  input.demand = &demand;
  input.pools = ValidPools();
  input.nodes = &uses;
  EnginePlacement placement(state, *engine, std::move(promises));
  ++stats.hook_steps;
  hook::StepOutput output = hook.Step(input, placement);
  output.wake_at = std::min(output.wake_at, nodes.settles_at());
  wake_at = std::min(wake_at, output.wake_at);
  memo = {output.created.empty(), hook.machines().version(), nodes.uses_version(), {}, {},
          output.wake_at};
  const bool less = Withdraw(output.withdrawn, input.pools);
  for (hook::StepOutput::NewNode& created : output.created) {
    RequestChanged(created.request.meta.name);
    if (!created.adopted) ++stats.node_requests;
  }
  for (model::Action& action : output.actions) {
    if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      RequestChanged(update->request->meta.name);
    }
    Emit(std::move(action), result);
  }
  TakeOutcomes(output.outcomes, entries);
  memo.demand = std::move(demand);
  memo.outcomes = std::move(output.outcomes);
  // The hook's changes are handled in this step, with one exception: pods that were pipelined to a
  // withdrawn node need a new decision, and perhaps a new node.
  dirty = less;
  if (dirty) wake_at = now;
  return !output.created.empty();
}

void DecisionLoop::Impl::TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                                      std::vector<engine::Waiting>& entries) {
  size_t next = 0;
  for (engine::Waiting& entry : entries) {
    if (!WantsNodes(entry)) continue;
    if (next >= outcomes.size()) break;
    const hook::DemandOutcome& outcome = outcomes[next++];
    verdict::Verdict& v = entry.verdict;
    // Part of it may be pipelined already: then its verdict stays.
    const bool decides = v.code == Code::kInsufficientCapacity;
    if (decides && outcome.code != v.code) {
      v.code = outcome.code;
      v.node_requests = outcome.node_requests;
      v.unblockers = verdict::DefaultUnblockers(v);  // the engine's advice was for another code
    }
    v.expected_at = outcome.expected_at;
    for (const std::string& detail : outcome.details) v.details.push_back(detail);
    const model::PodSpec& spec = *v.demand.front().spec;
    if (v.code == Code::kNoInstanceTypeFits &&
        (!spec.node_selector.empty() || spec.has_required_node_affinity)) {
      v.details.push_back("its node selector or affinity is part of the reason");
    }
  }
}

}  // namespace fairlead::core
