// Why no node takes a pod of a class: every node asked once for its reason, equal reasons counted.
//
// Thread-safety: the owner's thread. Complexity: O(nodes) a class; kept until the state changes.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::engine {

struct Diagnosis {
  std::vector<verdict::FailedPredicate> predicates;  // most nodes first, then by text
  int64_t nodes = 0;
  // Some node would take it if it were empty: time or eviction would do.
  bool fits_some_node_empty = false;
  // Some node's object (labels, taints) suits it, whatever its size.
  bool suits_some_node = false;
};

class Diagnoser {
 public:
  Diagnoser(const state::ClusterState& state, const framework::Framework& framework)
      : state_(state), framework_(framework) {}
  const Diagnosis& For(state::PodClassId pod_class);

 private:
  struct Cached {
    uint64_t version = 0;
    std::shared_ptr<const model::PodSpec> spec;
    Diagnosis diagnosis;
  };
  const state::ClusterState& state_;
  const framework::Framework& framework_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
};

}  // namespace fairlead::engine
