// The engine's what-if, as the hook asks for it.
//
// Ownership: borrows the engine. Thread-safety: the owner's thread; no event and no cycle while a
// rehearsal is open.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "autoscale-hook/demand.h"
#include "autoscale-hook/placement.h"
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

 private:
  const state::ClusterState& state_;
  engine::Engine& engine_;
  const Promises promises_;
};

// Nodes may be provisioned for the entry.
[[nodiscard]] bool WantsNodes(const engine::Waiting& entry);

// The demand of these entries. If some pods have required terms that may select others by labels,
// the specs of those others have the labels that are read (model::PodSpec::labels_for_affinity),
// and pods that differ in them are classes of their own.
hook::Demand DemandOf(const state::ClusterState& state,
                      const std::vector<engine::Waiting>& entries);

}  // namespace fairlead::core
