#include "tests/differential/judge_preemption.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/node_victims.h"

namespace fairlead::differential {

Json JudgePreemption(state::ClusterState& state, const framework::Framework& framework,
                     state::PodId id) {
  const state::PodRecord& pod = state.pod(id);
  const engine::NodePreemptor preemptor{pod.pod_class, state.workload(pod.workload).priority,
                                        state.QueueOf(pod)};
  Json answer{{"nodes", Json::object()}, {"best", Json::array()}};
  std::optional<engine::EvictionCost> least;
  uint64_t tried = 0;
  engine::Hypothesis what_if(state, framework, state::PartsOrder::kPack);
  for (const auto& [name, node] : state.nodes_by_name()) {
    const auto found = engine::FindNodeVictims(
        state, what_if, preemptor, node, [](const state::PodRecord&) { return false; }, tried);
    if (!found.has_value()) continue;
    Json& victims = answer["nodes"][name];
    victims = {{"pods", Json::array()}, {"violations", found->cost.violations}};
    for (const state::PodId victim : found->pods) {
      victims["pods"].push_back(absl::StrCat(state.pod(victim).ns, "/", state.pod(victim).name));
    }
    if (!least.has_value() || found->cost < *least) {
      least = found->cost;
      answer["best"] = Json::array();
    }
    if (found->cost == *least) answer["best"].push_back(name);
  }
  answer["chosen"] = answer["best"].empty() ? "" : answer["best"][0];
  return answer;
}

std::vector<std::string> ComparePreemption(const std::string& pod, const Json& ours,
                                           const Json& theirs) {
  std::vector<std::string> differences;
  if (!theirs.is_object() || !theirs.contains("nodes")) {
    return {absl::StrCat(pod, ": kube-scheduler says nothing about preemption")};
  }
  std::set<std::string> nodes;
  for (const Json* side : {&ours, &theirs}) {
    for (const auto& [node, victims] : (*side)["nodes"].items()) nodes.insert(node);
  }
  const auto on = [](const Json& side, const std::string& node) {
    const auto found = side["nodes"].find(node);
    return found == side["nodes"].end() ? Json() : *found;
  };
  for (const std::string& node : nodes) {
    const Json our = on(ours, node);
    const Json their = on(theirs, node);
    if (our == their) continue;
    differences.push_back(absl::StrCat(pod, ", victims on ", node, ": fairlead ", our.dump(),
                                       ", kube-scheduler ", their.dump()));
  }
  const Json& best = ours["best"];
  const std::string chosen = theirs.value("chosen", "");
  if (chosen.empty() ? !best.empty() : std::find(best.begin(), best.end(), chosen) == best.end()) {
    differences.push_back(absl::StrCat(pod, ", the node to evict on: fairlead ", best.dump(),
                                       ", kube-scheduler ", chosen));
  }
  return differences;
}

}  // namespace fairlead::differential
