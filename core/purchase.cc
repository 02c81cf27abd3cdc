// What DecisionLoop tells the scale hook, and what it makes of its answer.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/decision_loop_impl.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

using verdict::Code;

// The engine's hypothetical placement, as the hook asks for it.
class EnginePlacement final : public hook::Placement {
 public:
  explicit EnginePlacement(engine::Engine& engine) : engine_(engine) {}
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override {
    std::vector<engine::Engine::Load> loads;
    loads.reserve(already.size());
    for (const Load& load : already) loads.push_back({load.spec, load.count});
    return engine_.CountThatFit(node, loads, spec, limit);
  }

 private:
  engine::Engine& engine_;
};

bool WantsNodes(const engine::Waiting& entry) {
  return entry.wants_nodes && !entry.verdict.demand.empty();
}

// Whether its pods fit on a node that does not exist yet has nothing to do with other pods.
bool DependsOnItselfAlone(const hook::DemandItem& item) {
  return std::all_of(item.classes.begin(), item.classes.end(), [](const auto& pod_class) {
    const model::PodSpec& spec = *pod_class.spec;
    return spec.pod_affinity.empty() && spec.pod_anti_affinity.empty() &&
           spec.topology_spread.empty() && spec.labels_for_affinity.empty();
  });
}

}  // namespace

hook::Demand DecisionLoop::Impl::DemandOf(const std::vector<engine::Waiting>& entries) const {
  hook::Demand demand;
  for (const engine::Waiting& entry : entries) {
    if (!WantsNodes(entry)) continue;
    const state::Workload& workload = state.workload(entry.workload);
    hook::DemandItem item;
    item.workload = model::Key(workload.ns, workload.name);
    item.is_group = workload.is_group;
    item.queue = workload.queue;
    item.priority = workload.priority;
    item.classes = entry.verdict.demand;
    item.atomic = entry.verdict.min_member > 1 && entry.verdict.pods_running == 0;
    item.domains = entry.domains;
    demand.push_back(std::move(item));
  }
  return demand;
}

void DecisionLoop::Impl::TellOffers() {
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
  for (const engine::Waiting& entry : entries) {
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node != state::kNoId) promised.insert(pod.node);
    }
  }
  for (const state::NodeId node : engine->KeptNodes()) promised.insert(node);
  hook::Demand demand = DemandOf(entries);
  if (stale()) {
    // What it said last stands, so that verdicts do not change; its timers wait.
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
  EnginePlacement placement(*engine);
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
  // What the hook changed is dealt with in this step, but for this: what was promised a node that
  // is withdrawn is to be decided, and bought for, anew.
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
    // Part of it may be promised already: then it goes on showing that.
    const bool decides = v.code == Code::kInsufficientCapacity;
    if (decides && outcome.code != v.code) {
      v.code = outcome.code;
      v.node_requests = outcome.node_requests;
      v.unblockers = verdict::DefaultUnblockers(v);  // what the engine advised was for another code
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
