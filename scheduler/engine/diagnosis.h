// Why no node takes a pod of a class (Feasibility::WhyNot), remembered until a node, or a claim
// that the class names, changes; of a class that no node could take even if it were empty, until
// the object of a node does. There may be many of the latter: each pod that fits nowhere may be of
// a size of its own, and they would be found out about again in every cycle.
//
// Thread-safety: the owner's thread. Complexity: O(nodes) a class and change. Memory: kMaxCached
// answers, and kMaxByObjects more of those that only the objects of nodes change.
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
  static constexpr size_t kMaxCached = 1024;
  static constexpr size_t kMaxByObjects = 32'768;
  void MakeRoom();
  struct Cached {
    uint64_t seen = 0;  // NodeChanges::end() then
    Diagnosis diagnosis;
  };
  const state::ClusterState& state_;
  Feasibility feasibility_;
  const NodeChanges& changes_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
  size_t kept_ = 0;  // when room was made the last time
};

}  // namespace fairlead::engine
