// Which node a pod that has to wait was promised before, so that promises stay where they are while
// nothing better comes up. Otherwise a new pod would move the promises of all pods after it by one,
// and each of these would get another verdict.
//
// First the node of the last cycle, then the nodes that were ordered for its workload, in the order
// of their names. Only a wish: what does not fit any more, or starts at once elsewhere, goes there
// (Placer).
//
// An id may be reused between cycles; then the wish belongs to another pod, which harms nothing.
// An offer depends on the state and on the last cycle alone, so that it is the same again when the
// state is as it was (undo).
// Thread-safety: the owner's thread. Complexity: O(promises) a cycle; once a cycle O(nodes), if a
// pod without a former promise is to be promised a node that is not ready; for each offer a compare
// of amounts with each full node that was ordered for its workload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NominatedNodes {
 public:
  explicit NominatedNodes(const state::ClusterState& state) : state_(state) {}

  // A cycle begins.
  void Begin();
  // Offers nodes to the pod until one is taken; false: none was.
  bool Offer(const state::PodRecord& pod, absl::FunctionRef<bool(state::NodeId)> take);
  // Nodes that are on order for the workload, by name. Valid until Begin().
  const std::vector<state::NodeId>& OrderedFor(const state::Workload& workload);
  // A cycle has ended with these promises, and no others.
  void Forget() { last_.clear(); }
  void Remember(state::PodId pod, state::NodeId node) { last_.insert_or_assign(pod, node); }

 private:
  void ListOrdered();
  // Null if there is none.
  const std::vector<state::NodeId>* FindOrdered(const state::Workload& workload);

  const state::ClusterState& state_;
  absl::flat_hash_map<state::PodId, state::NodeId> last_;
  // By "namespace/name".
  std::optional<absl::flat_hash_map<std::string, std::vector<state::NodeId>>> ordered_;
};

}  // namespace fairlead::engine
