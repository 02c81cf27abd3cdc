// Why no node takes a pod of a class (Feasibility::WhyNot), remembered until a node changes.
//
// Thread-safety: the owner's thread. Complexity: O(nodes) a class and change.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class Diagnoser {
 public:
  Diagnoser(const state::ClusterState& state, const framework::Framework& framework)
      : state_(state), feasibility_(state, framework) {}
  const Diagnosis& For(state::PodClassId pod_class);

 private:
  struct Cached {
    uint64_t version = 0;
    std::shared_ptr<const model::PodSpec> spec;
    Diagnosis diagnosis;
  };
  const state::ClusterState& state_;
  Feasibility feasibility_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
};

}  // namespace fairlead::engine
