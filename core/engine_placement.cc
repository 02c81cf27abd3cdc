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

  void Know(const std::shared_ptr<const model::PodSpec>& spec) override { what_if_->ClassOf(spec); }
  int AddNode(const model::Node& node) override {
    work_ += kWorkOfChange;
    const size_t mark = Mark();
    const state::NodeId id = what_if_->AddNode(node);
    nodes_.push_back({id, mark});
    if (id >= numbers_.size()) numbers_.resize(id + 1, kPresent);
    return numbers_[id] = static_cast<int>(nodes_.size()) - 1;
  }
  int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                int64_t count) override {
    return Place(what_if_->ClassOf(spec), IdOf(node), count);
  }
  std::vector<std::pair<int, int64_t>> PlaceBest(
      const std::shared_ptr<const model::PodSpec>& spec, int64_t count,
      absl::FunctionRef<bool(int)> passed_over) override {
    const state::PodClassId wanted = what_if_->ClassOf(spec);
    std::vector<std::pair<int, int64_t>> placed;
    for (int64_t i = 0; i < count; ++i) {
      const state::NodeId best = Best(wanted, passed_over);
      if (best == state::kNoId || Place(wanted, best, 1) == 0) break;
      const int number = NumberOf(best);
      if (placed.empty() || placed.back().first != number) placed.emplace_back(number, 0);
      ++placed.back().second;
    }
    return placed;
  }
  int64_t MostThatFit(const std::shared_ptr<const model::PodSpec>& spec, int node,
                      int64_t limit) override {
    ++work_;
    return what_if_->MostThatFit(what_if_->ClassOf(spec), IdOf(node), limit);
  }
  std::optional<std::vector<std::string>> DomainLabels(
      const std::shared_ptr<const model::PodSpec>& spec) override {
    ++work_;
    return what_if_->DomainLabels(what_if_->ClassOf(spec));
  }
  bool OthersRefuse(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    ++work_;
    return what_if_->OthersRefuse(what_if_->ClassOf(spec), IdOf(node));
  }
  std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    ++work_;
    framework::Status why;
    if (what_if_->Fits(what_if_->ClassOf(spec), IdOf(node), engine::Hypothesis::kPromised, &why)) {
      return "";
    }
    return why.reason;
  }
  [[nodiscard]] size_t Mark() const override { return what_if_->Mark() - start_; }
  void RollbackTo(size_t mark) override {
    what_if_->RollbackTo(start_ + mark);
    while (!nodes_.empty() && nodes_.back().mark >= mark) {
      numbers_[nodes_.back().id] = kPresent;
      nodes_.pop_back();
    }
  }
  [[nodiscard]] int64_t work() const override { return work_; }

 private:
  struct Node {
    state::NodeId id;
    size_t mark;  // before it was added
  };
  // Nodes that are planned or removed, pods that are placed or taken away.
  static constexpr int64_t kWorkOfChange = 8;
  // For pods of which the nodes have no order all nodes are looked at, planned ones newest first.
  static constexpr size_t kMaxPlannedScanned = 128;
  static constexpr int kMaxPresentScans = 64;

  int64_t Place(state::PodClassId wanted, state::NodeId node, int64_t count) {
    const int64_t placed = what_if_->Place(wanted, node, count);
    work_ += 1 + kWorkOfChange * placed;
    return placed;
  }
  // As the engine's Placer chooses, when all of the nodes are usable.
  state::NodeId Best(state::PodClassId wanted, absl::FunctionRef<bool(int)> passed_over) {
    uint64_t looks = 1;
    const auto best = what_if_->BestNode(wanted, looks, [&](state::NodeId id) {
      const int number = NumberOf(id);
      return number != kPresent && passed_over(number);
    });
    work_ += static_cast<int64_t>(looks);
    return best.has_value() ? *best : BestByScan(wanted, passed_over);
  }
  state::NodeId BestByScan(state::PodClassId wanted, absl::FunctionRef<bool(int)> passed_over) {
    std::vector<state::NodeId> ids;
    const auto look = [&](state::NodeId id) {
      ++work_;
      if (what_if_->Fits(wanted, id, engine::Hypothesis::kPromised)) ids.push_back(id);
    };
    if (present_scans_ < kMaxPresentScans) {
      ++present_scans_;
      for (const auto& [name, id] : state_.nodes_by_name()) {
        if (state_.node(id).kind != state::NodeKind::kVirtual) look(id);
      }
    }
    const size_t first =
        nodes_.size() > kMaxPlannedScanned ? nodes_.size() - kMaxPlannedScanned : size_t{0};
    for (size_t n = first; n < nodes_.size(); ++n) {
      if (!passed_over(static_cast<int>(n))) look(nodes_[n].id);
    }
    return ids.empty() ? state::kNoId : ids[what_if_->BestOf(wanted, ids)];
  }
  [[nodiscard]] state::NodeId IdOf(int node) const { return nodes_[static_cast<size_t>(node)].id; }
  [[nodiscard]] int NumberOf(state::NodeId id) const {
    return id < numbers_.size() ? numbers_[id] : kPresent;
  }

  const state::ClusterState& state_;
  std::unique_ptr<engine::Hypothesis> what_if_;
  engine::Hypothesis::Checkpoint start_ = 0;
  std::vector<Node> nodes_;   // by number
  std::vector<int> numbers_;  // by id; kPresent: not planned
  int64_t work_ = 0;
  int present_scans_ = 0;
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
