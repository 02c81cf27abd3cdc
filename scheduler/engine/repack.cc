// The second attempt of Placer: packing.h has the search.
#include <algorithm>

#include "scheduler/engine/packing.h"
#include "scheduler/engine/placer.h"

namespace fairlead::engine {
namespace {

// False if a set below has a topology constraint of its own: its domains are tried in turn.
bool Collect(const state::Workload& workload, const StepNode& node,
             std::vector<state::PodId>& pods) {
  pods.insert(pods.end(), node.pods.begin(), node.pods.end());
  return std::all_of(node.children.begin(), node.children.end(), [&](const StepNode& child) {
    return workload.sets[static_cast<size_t>(child.set)].topology.topology.empty() &&
           Collect(workload, child, pods);
  });
}

// Pods that have to go where another one brings their claim fit nowhere as things are. They can go
// where the others can.
void FollowCarriers(const state::ClusterState& state, std::vector<PackingClass>& classes) {
  std::vector<state::NodeId> nodes;
  for (const PackingClass& alike : classes) {
    for (const state::NodeId node : alike.nodes) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  for (PackingClass& alike : classes) {
    const bool joins = !state.class_of(alike.pods.front()).spec->claims_to_join.empty();
    if (joins && alike.nodes.empty()) alike.nodes = nodes;
  }
}

}  // namespace

void Placer::CheckGangMinimum(Attempt& attempt, const StepNode& node) const {
  int64_t real = 0;
  for (const state::PodId pod : node.pods) {
    real += state_.pod(pod).status == state::PodStatus::kBinding ? 1 : 0;
  }
  if (real < static_cast<int64_t>(node.pods.size())) {
    attempt.result.promised = true;
    if (real < node.needed) attempt.must_wait = true;
  }
  for (const StepNode& child : node.children) CheckGangMinimum(attempt, child);
}

bool Placer::PlaceLargestFirst(Attempt& attempt, std::vector<state::PodId> pods, const Area& area,
                               bool only_now) {
  const auto mark = attempt.txn.Mark();
  SortBySize(state_, pods);
  for (const state::PodId pod : pods) {
    const Choice choice = Best(pod, attempt.mode, area);
    if (choice.node == state::kNoId || !PlaceAt(attempt, pod, choice, only_now)) {
      attempt.txn.RollbackTo(mark);
      return false;
    }
  }
  return true;
}

bool Placer::PlaceAnyWay(Attempt& attempt, const std::vector<state::PodId>& pods, const Area& area,
                         bool only_now) {
  std::vector<PackingClass> classes = ByClass(state_, pods);
  const auto nodes = static_cast<int64_t>(area.nodes != nullptr ? area.nodes->nodes().size()
                                                                : state_.node_count());
  const int64_t looks = nodes * static_cast<int64_t>(classes.size());
  int64_t tries = std::min(kMaxPackingTries, packing_tries_);
  if (looks > tries) return false;
  packing_tries_ -= looks;
  tries -= looks;
  for (PackingClass& alike : classes) {
    std::vector<Choice> choices =
        AllChoices(state_.pod(alike.pods.front()).pod_class, attempt.mode, area);
    if (only_now) std::erase_if(choices, [](const Choice& choice) { return !choice.now; });
    // Nodes came by name.
    std::stable_sort(choices.begin(), choices.end(), Better);
    for (const Choice& choice : choices) alike.nodes.push_back(choice.node);
  }
  FollowCarriers(state_, classes);
  const int64_t before = tries;
  const auto place = [&](state::PodId pod, state::NodeId node) {
    const Candidate there = Look(state_.pod(pod).pod_class, node, attempt.mode, area);
    return there.IsOpen() && PlaceAt(attempt, pod, there.choice, only_now);
  };
  const PackingEnd end = Pack(attempt.txn, std::move(classes), place, tries);
  packing_tries_ -= before - tries;
  return end == PackingEnd::kFound;
}

std::vector<state::PodId> Placer::Repackable(const state::Workload& workload,
                                             const StepNode& node) const {
  std::vector<state::PodId> pods;
  if (!Collect(workload, node, pods) || pods.size() < 2) return {};
  const state::PodClassId first = state_.pod(pods.front()).pod_class;
  const bool alike = std::all_of(pods.begin(), pods.end(), [&](state::PodId pod) {
    return state_.pod(pod).pod_class == first;
  });
  // Each of like pods takes one place of as many as there are: that was exact.
  if (alike && framework_.NodeLocal(state_.pod_class(first))) return {};
  return pods;
}

bool Placer::Repack(Attempt& attempt, const StepNode& node, const std::vector<state::PodId>& pods,
                    const Area& area, bool only_now) {
  if (!PlaceLargestFirst(attempt, pods, area, only_now) &&
      !PlaceAnyWay(attempt, pods, area, only_now)) {
    return false;
  }
  CheckGangMinimum(attempt, node);
  return true;
}

}  // namespace fairlead::engine
