// Classes of which no node takes a pod, and since which change of the nodes that is known: what
// fits nowhere is asked about again only on nodes that have changed, and needs no order of nodes.
// There may be many more of them than there are orders: each pod that waits in a full cluster may
// be of a size of its own.
//
// Thread-safety: the owner's thread. Complexity: O(1) while nothing changed, O(changed nodes)
// after. Memory: 24 bytes a class.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class RefusedClasses {
 public:
  explicit RefusedClasses(const NodeChanges& changes) : changes_(changes) {}

  // What one node says. What does not suit does not take.
  struct Answer {
    bool suits = false;  // its object may hold a pod of the class, whatever is on it
    bool takes = false;
  };
  using Ask = absl::FunctionRef<Answer(state::NodeId)>;

  // No node takes a pod of the class now. `by_objects`: none suits. `by_node`: what a node says
  // depends on no other node. One of both is true.
  void Add(state::PodClassId pod_class, bool by_objects, bool by_node);
  // True if it is known that no node takes a pod of the class; asks those that have changed. Once
  // one might, the class is forgotten.
  bool Contains(state::PodClassId pod_class, Ask ask);
  // The same, if no node has to be asked; false: one has.
  bool ContainsUnasked(state::PodClassId pod_class);
  // The same, whatever is on the nodes.
  [[nodiscard]] bool SuitsNone(state::PodClassId pod_class) const;
  void Forget(state::PodClassId pod_class) { known_.erase(pod_class); }

  // Calls `use` with each class of which this is known as of now.
  void ForEachCurrent(absl::FunctionRef<void(state::PodClassId)> use) const;

 private:
  struct Known {
    uint64_t seen = 0;  // the first of NodeChanges that is not
    bool by_objects = false;
    bool by_node = false;
  };
  // The changes before this number are all that matter now.
  [[nodiscard]] uint64_t EndFor(const Known& known) const {
    return known.by_objects ? changes_.object_end() : changes_.end();
  }

  const NodeChanges& changes_;
  absl::flat_hash_map<state::PodClassId, Known> known_;
};

}  // namespace fairlead::engine
