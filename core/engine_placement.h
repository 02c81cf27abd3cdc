// The engine's what-if, as the hook asks for it.
//
// Ownership: borrows the engine. Thread-safety: the owner's thread; no event and no cycle while a
// rehearsal is open.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "autoscale-hook/planner/placement.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class EnginePlacement final : public hook::Placement {
 public:
  // Pods with the node that each was promised in the last cycle: they stand there in rehearsals.
  using Promises = std::vector<std::pair<state::PodId, state::NodeId>>;

  EnginePlacement(const state::ClusterState& state, engine::Engine& engine, Promises promises = {})
      : state_(state), engine_(engine), promises_(std::move(promises)) {}

  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override;
  std::unique_ptr<hook::Rehearsal> Rehearse() override;

  static Promises PromisesOf(const std::vector<engine::Waiting>& entries);
  // In the what-if too, unless the pod has been bound or has ended since.
  static void Keep(const Promises& promises, const state::ClusterState& state,
                   engine::Hypothesis& what_if);

 private:
  const state::ClusterState& state_;
  engine::Engine& engine_;
  const Promises promises_;
};

}  // namespace fairlead::core
