#include "scheduler/engine/buying.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "scheduler/engine/hypothesis.h"

namespace fairlead::engine {

uint64_t KindOfDemand(const state::ClusterState& state, const Outcome& outcome) {
  const state::Workload& workload = state.workload(outcome.workload);
  const TasksToAllocate& step = outcome.step;
  StableHash hash;
  hash.Add(workload.queue).Add(static_cast<int64_t>(workload.preemptible));
  hash.Add(KindOf(state, workload, step).text).Add(static_cast<int64_t>(step.pods.size()));
  if (workload.Active() > 0) hash.Add(workload.ns).Add(workload.name).Add(workload.uid);
  uint64_t last = 0;
  for (const state::PodId pod : step.pods) {
    const uint64_t serial = state.class_of(pod).serial;
    if (std::exchange(last, serial) != serial) hash.Add(static_cast<int64_t>(serial));
  }
  return hash.value();
}

bool FitsSomeOffer(const CycleInputs& in, state::PodClassId pod_class) {
  return std::any_of(
      in.offered_nodes.begin(), in.offered_nodes.end(), [&](const model::Node& node) {
        Hypothesis what_if(in.state, in.framework, in.placer.gpu_order());
        return what_if.Fits(pod_class, what_if.AddNode(node), framework::Capacity::kEmpty);
      });
}

bool Buying::Prefers(const Outcome& outcome) {
  if (!in_.options.hook_on || in_.buys_first.empty()) return false;
  if (outcome.code == verdict::Code::kQueueLimitReached) return false;
  return in_.buys_first.contains(in_.tree.Name(outcome.leaf)) && IsAboveQuota(outcome) &&
         CanBeHad(outcome);
}

bool Buying::IsAboveQuota(const Outcome& outcome) const {
  const auto resources = in_.tree.resources();
  return std::any_of(resources.begin(), resources.end(), [&](model::ResourceIndex r) {
    const int64_t request = outcome.step_request[r];
    const int64_t quota = in_.tree.BoundsOf(outcome.leaf, r).quota;
    if (request <= 0 || quota == model::kUnlimited) return false;
    const int64_t held = in_.tracker.ledger().allocated(outcome.leaf, r);
    return model::SaturatingAdd(held, request) > quota;
  });
}

bool Buying::CanBeHad(const Outcome& outcome) {
  if (in_.unservable != nullptr && in_.unservable->contains(KindOfDemand(in_.state, outcome))) {
    return false;
  }
  const auto& pods = outcome.step.pods;
  return std::all_of(pods.begin(), pods.end(), [this](state::PodId pod) {
    const state::PodClassId id = in_.state.pod(pod).pod_class;
    const auto [known, added] = on_offer_.try_emplace(id, false);
    if (added) known->second = FitsSomeOffer(in_, id);
    return known->second;
  });
}

}  // namespace fairlead::engine
