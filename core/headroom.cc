#include "core/headroom.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "scheduler/engine/hypothesis.h"

namespace fairlead::core {

int64_t Headroom::PutOn(engine::Hypothesis& what_if,
                        const std::shared_ptr<const model::PodSpec>& spec,
                        state::PodClassId pod_class, state::NodeId node, int64_t count,
                        Placed& placed) const {
  const state::NodeInfo& info = state_.node(node);
  if (count == 0 || !info.exists || info.kind == state::NodeKind::kVirtual) return 0;
  // Most nodes are full: amounts say so at a fraction of the cost.
  if (what_if.MostThatFit(pod_class, node, 1) == 0) return 0;
  const int64_t pods = what_if.Place(pod_class, node, count);
  if (pods == 0) return 0;
  placed.spots.push_back({spec, node, pods});
  placed.answer.placed += pods;
  placed.answer.usable = placed.answer.usable && info.kind == state::NodeKind::kReal;
  return pods;
}

void Headroom::PlaceOne(engine::Hypothesis& what_if, Placed& placed) {
  const engine::Hypothesis::Checkpoint before = what_if.Mark();
  placed.answer.usable = true;
  for (const CapacityAsk::Pods& pods : placed.ask.pods) {
    placed.answer.wanted += pods.count;
    int64_t left = pods.count;
    const state::PodClassId pod_class = what_if.ClassOf(pods.spec);
    for (const std::string& name : former_[placed.ask.Name()]) {
      const auto known = state_.nodes_by_name().find(name);
      if (known == state_.nodes_by_name().end()) continue;
      left -= PutOn(what_if, pods.spec, pod_class, known->second, left, placed);
    }
    for (const auto& [name, node] : state_.nodes_by_name()) {
      if (left == 0) break;
      left -= PutOn(what_if, pods.spec, pod_class, node, left, placed);
    }
    if (left > 0) placed.rest.push_back({pods.spec, left, placed.ask.atomic ? left : 0});
  }
  placed.answer.usable = placed.answer.usable && placed.rest.empty();
  // A part of it is of no use, unless the nodes for the others come: else it would keep the room
  // from what asks later.
  if (placed.rest.empty() || !placed.ask.atomic || placed.ask.keeps_nodes) return;
  what_if.RollbackTo(before);
  placed.spots.clear();
}

void Headroom::Place(engine::Engine& engine, const EnginePlacement::Promises& promises,
                     std::vector<CapacityAsk> asks) {
  placed_.clear();
  kept_.clear();
  std::map<std::string, std::set<std::string>> nodes;
  if (!asks.empty()) {
    const std::unique_ptr<engine::Hypothesis> what_if = engine.WhatIf();
    EnginePlacement::Keep(promises, state_, *what_if);
    for (CapacityAsk& ask : asks) {
      Placed& placed = placed_.emplace_back();
      placed.ask = std::move(ask);
      PlaceOne(*what_if, placed);
      std::set<std::string>& names = nodes[placed.ask.Name()];
      for (const Spot& spot : placed.spots) {
        names.insert(state_.node(spot.node).name());
        if (placed.ask.keeps_nodes) kept_.insert(spot.node);
      }
    }
  }
  former_ = std::move(nodes);
}

void Headroom::AppendDemand(hook::Demand& demand) const {
  for (const Placed& placed : placed_) {
    if (placed.rest.empty() || !placed.ask.wants_nodes) continue;
    hook::DemandItem& item = demand.emplace_back();
    item.workload = placed.ask.Name();
    item.queue = placed.ask.queue;
    item.classes = placed.rest;
    item.atomic = placed.ask.atomic;
  }
}

void Headroom::Tell(const std::vector<hook::DemandOutcome>& outcomes, CapacityObjects& objects,
                    absl::Time now) {
  size_t next = 0;
  for (Placed& placed : placed_) {
    if (!placed.rest.empty() && placed.ask.wants_nodes) {
      if (next == outcomes.size()) continue;
      const hook::DemandOutcome& outcome = outcomes[next++];
      placed.answer.nodes_requested = outcome.code == verdict::Code::kNodesRequested;
      placed.answer.code = std::string(verdict::CodeName(outcome.code));
      placed.answer.details = absl::StrJoin(outcome.details, "; ");
    }
    objects.Answer(placed.ask, placed.answer, now);
  }
}

bool Headroom::Occupy(engine::Hypothesis& what_if) const {
  bool all = true;
  for (const Placed& placed : placed_) {
    if (!placed.ask.keeps_nodes) continue;
    for (const Spot& spot : placed.spots) {
      all &= what_if.Place(what_if.ClassOf(spot.spec), spot.node, spot.pods) == spot.pods;
    }
  }
  return all;
}

std::vector<std::string> DemandWithHeadroom::Names(size_t item, int64_t count) const {
  if (item < engine_items_) return engine_demand_.Names(item, count);
  return {demand_[item].workload};
}

std::optional<size_t> DemandWithHeadroom::Find(bool is_group, const std::string& workload) const {
  for (size_t i = engine_items_; i < demand_.size(); ++i) {
    if (demand_[i].workload == workload) return i;
  }
  return engine_demand_.Find(is_group, workload);
}

}  // namespace fairlead::core
