#include "scheduler/engine/cycle_context.h"

#include "scheduler/state/transaction.h"

namespace fairlead::engine {
void PipelinedPods::Discard(state::ClusterState& state) const {
  for (const state::PodId pod : promised_) state::ReleasePromise(state, pod);
  for (const Victim& victim : moved_) {
    const VictimUnit::Place& from = victim.from;
    state::ReturnVictim(state, victim.pod, from.node, from.parts, from.zones);
  }
}

CycleContext::CycleContext(const CycleInputs& inputs)
    : in(inputs),
      outcomes(inputs.state),
      lending(inputs.state, inputs.tree, inputs.tracker, inputs.total),
      variants(inputs.state, inputs.tree, inputs.tracker) {
  decisions.WakeAt(in.backoff.NextEnd(in.now));
}

model::Resources CycleContext::ChargeOf(absl::Span<const state::PodId> pods) const {
  model::Resources charge;
  for (state::PodId pod : pods) charge += in.tracker.ChargeOf(in.state.pod(pod));
  return charge;
}

bool CycleContext::InBackoff(const TasksToAllocate& step) const {
  if (in.backoff.empty()) return false;
  return std::any_of(step.pods.begin(), step.pods.end(), [&](state::PodId pod) {
    return in.backoff.Holds(in.state.pod(pod).uid, in.now);
  });
}

void CycleContext::RecordPromises(const state::Workload& workload, queues::QueueId leaf,
                                  const std::vector<state::PodId>& pods, bool victims_chosen) {
  Outcome& outcome = outcomes.Of(workload, leaf);
  bool here = victims_chosen;
  for (state::PodId pod : pods) {
    const state::NodeId node = in.state.pod(pod).node;
    pipelined.Add(pod);
    outcome.promises.push_back({pod, node});
    const state::NodeInfo& info = in.state.node(node);
    if (info.TakesBindings() && !info.releasing.IsZero()) here = true;
  }
  // A gang that waits for both shows the nodes: they take longer.
  const bool ordered = std::any_of(outcome.promises.begin(), outcome.promises.end(),
                                   [this](const Waiting::PodPromise& promise) {
                                     return !in.state.node(promise.node).TakesBindings();
                                   });
  using verdict::Code;
  if (victims_chosen || outcome.code == Code::kNone ||
      outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kWaitingForVictims) {
    outcome.violation.reset();
    outcome.code = ordered ? Code::kNodesRequested
                   : here  ? Code::kWaitingForVictims
                           : Code::kInsufficientCapacity;
  }
}

}  // namespace fairlead::engine
