// Evictions from nodes that the hook empties (hook::StepOutput::emptied), of DecisionLoop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_impl.h"
#include "core/engine_evacuation.h"

namespace fairlead::core {

void DecisionLoop::Impl::TakeEmptied(std::vector<hook::StepOutput::EmptiedNode> nodes_to_empty) {
  emptied.clear();
  for (hook::StepOutput::EmptiedNode& node : nodes_to_empty) {
    emptied.emplace(std::move(node.name), std::move(node.why));
  }
}

// Pods that run there and have not been told to go. A refused one is left alone for its pause.
void DecisionLoop::Impl::EmptyNodes(absl::Time now) {
  for (auto it = spared_until.begin(); it != spared_until.end();) {
    it = it->second <= now || emptied.empty() ? spared_until.erase(it) : std::next(it);
  }
  if (stale()) return;
  for (const auto& [name, why] : emptied) {
    const state::NodeId node = state.FindNode(name);
    if (node == state::kNoId) continue;
    std::vector<Evictions::Victim> set;
    for (const state::PodId id : std::vector<state::PodId>(state.node(node).pods)) {
      const state::PodRecord& pod = state.pod(id);
      const bool runs =
          pod.status == state::PodStatus::kRunning || pod.status == state::PodStatus::kBound;
      if (!EngineEvacuation::Stays(pod) || !pod.ours || !runs || pod.terminating) continue;
      if (const auto spared = spared_until.find(pod.uid); spared != spared_until.end()) {
        wake_at = std::min(wake_at, spared->second);
        continue;
      }
      const std::string message = absl::StrCat("Evicted from node ", name, ", which is ", why);
      set.push_back({.evict = {pod.ns, pod.name, pod.uid, kEvictionReason, message},
                     .gang = pod.workload,
                     .for_workload = name,
                     .cause = Evictions::Cause::kNode,
                     .event = EvictionEvent(pod, message)});
      state.ChargeBudgets(id);
      state.AssumeEvicted(id);
    }
    std::stable_sort(set.begin(), set.end(),
                     [](const auto& a, const auto& b) { return a.gang < b.gang; });
    if (!set.empty()) {
      evictions.Add(std::move(set));
      engine->OnQueuesChanged();
    }
  }
}

bool DecisionLoop::Impl::IsEmptied(const std::string& node, const model::EvictPod& evict) const {
  const state::PodId pod = FindLeaving(evict);
  if (pod == state::kNoId || state.pod(pod).node == state::kNoId) return false;
  return emptied.contains(node) && state.node(state.pod(pod).node).name() == node;
}

}  // namespace fairlead::core
