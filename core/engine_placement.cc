#include "core/engine_placement.h"

#include "scheduler/engine/hypothesis.h"

namespace fairlead::core {
namespace {

class EngineRehearsal final : public hook::Rehearsal {
 public:
  EngineRehearsal(const state::ClusterState& state, std::unique_ptr<engine::Hypothesis> what_if,
                  const EnginePlacement::Promises& promises)
      : state_(state), what_if_(std::move(what_if)) {
    EnginePlacement::Keep(promises, state_, *what_if_);
    start_ = what_if_->Mark();
  }

  int AddNode(const model::Node& node) override {
    const size_t mark = Mark();
    nodes_.push_back({what_if_->AddNode(node), mark});
    return static_cast<int>(nodes_.size()) - 1;
  }
  int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                int64_t count) override {
    return what_if_->Place(what_if_->ClassOf(spec), IdOf(node), count);
  }
  std::vector<std::pair<int, int64_t>> PlaceBest(const std::shared_ptr<const model::PodSpec>& spec,
                                                 int64_t count, const std::vector<int>& nodes,
                                                 bool present) override {
    const state::PodClassId wanted = what_if_->ClassOf(spec);
    std::vector<std::pair<int, int64_t>> placed;
    for (int64_t i = 0; i < count; ++i) {
      const std::pair<int, state::NodeId> best = Best(wanted, nodes, present);
      if (best.second == state::kNoId || what_if_->Place(wanted, best.second, 1) == 0) break;
      if (placed.empty() || placed.back().first != best.first) placed.emplace_back(best.first, 0);
      ++placed.back().second;
    }
    return placed;
  }
  std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    framework::Status why;
    if (what_if_->Fits(what_if_->ClassOf(spec), IdOf(node), engine::Hypothesis::kPromised, &why)) {
      return "";
    }
    return why.reason;
  }
  [[nodiscard]] size_t Mark() const override { return what_if_->Mark() - start_; }
  void RollbackTo(size_t mark) override {
    what_if_->RollbackTo(start_ + mark);
    while (!nodes_.empty() && nodes_.back().mark >= mark) nodes_.pop_back();
  }

 private:
  struct Node {
    state::NodeId id;
    size_t mark;  // before it was added
  };
  // As the engine's Placer chooses, when all of the nodes are usable.
  [[nodiscard]] std::pair<int, state::NodeId> Best(state::PodClassId wanted,
                                                   const std::vector<int>& nodes,
                                                   bool present) const {
    std::vector<int> numbers;
    std::vector<state::NodeId> ids;
    const auto look = [&](int number, state::NodeId id) {
      if (!what_if_->Fits(wanted, id, engine::Hypothesis::kPromised)) return;
      numbers.push_back(number);
      ids.push_back(id);
    };
    if (present) {
      for (const auto& [name, id] : state_.nodes_by_name()) {
        if (state_.node(id).kind != state::NodeKind::kVirtual) look(kPresent, id);
      }
    }
    for (const int node : nodes) look(node, IdOf(node));
    if (ids.empty()) return {kPresent, state::kNoId};
    const size_t best = what_if_->BestOf(wanted, ids);
    return {numbers[best], ids[best]};
  }
  [[nodiscard]] state::NodeId IdOf(int node) const { return nodes_[static_cast<size_t>(node)].id; }

  const state::ClusterState& state_;
  std::unique_ptr<engine::Hypothesis> what_if_;
  engine::Hypothesis::Checkpoint start_ = 0;
  std::vector<Node> nodes_;  // by number
};

}  // namespace

EnginePlacement::Promises EnginePlacement::PromisesOf(const std::vector<engine::Waiting>& entries) {
  Promises promises;
  for (const engine::Waiting& entry : entries) {
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node != state::kNoId) promises.emplace_back(pod.pod, pod.node);
    }
  }
  return promises;
}

void EnginePlacement::Keep(const Promises& promises, const state::ClusterState& state,
                           engine::Hypothesis& what_if) {
  for (const auto& [pod, node] : promises) {
    if (state.pod(pod).status == state::PodStatus::kPending) what_if.Promise(pod, node);
  }
}

int64_t EnginePlacement::CountThatFit(const model::Node& node, const std::vector<Load>& already,
                                      const std::shared_ptr<const model::PodSpec>& spec,
                                      int64_t limit) {
  std::vector<engine::Engine::Load> loads;
  loads.reserve(already.size());
  for (const Load& load : already) loads.push_back({load.spec, load.count});
  return engine_.CountThatFit(node, loads, spec, limit);
}

std::unique_ptr<hook::Rehearsal> EnginePlacement::Rehearse() {
  return std::make_unique<EngineRehearsal>(state_, engine_.WhatIf(), promises_);
}

}  // namespace fairlead::core
