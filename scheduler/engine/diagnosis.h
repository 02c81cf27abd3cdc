// Why no node takes a pod of a class (Feasibility::WhyNot), remembered until a node, or a claim
// that the class names, changes; of a class that no node could take even if it were empty, until
// the object of a node does.
//
// Thread-safety: the owner's thread. Complexity: O(nodes) a class and change.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class Diagnoser final : public state::StateSubscriber {
 public:
  // Both this and `changes` are to be subscribed by the owner.
  Diagnoser(const state::ClusterState& state, const framework::Framework& framework,
            const NodeChanges& changes)
      : state_(state), feasibility_(state, framework), changes_(changes) {}
  // Valid until the next change.
  const Diagnosis& For(state::PodClassId pod_class);

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;

 private:
  struct Cached {
    uint64_t seen = 0;  // NodeChanges::end() then
    Diagnosis diagnosis;
  };
  const state::ClusterState& state_;
  Feasibility feasibility_;
  const NodeChanges& changes_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
};

}  // namespace fairlead::engine
