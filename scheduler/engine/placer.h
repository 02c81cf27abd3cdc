// Puts the pods of one step of a workload on nodes, all or nothing, inside a transaction.
//
// Thread-safety: the owner's thread. Complexity: a logarithm a pod for node-local classes, one scan of
// the nodes a pod for others.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/engine/node_order.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

class Placer {
 public:
  Placer(state::ClusterState& state, const framework::Framework& framework)
      : state_(state), framework_(framework), now_(state, framework, framework::Room::kNow),
        future_(state, framework, framework::Room::kFuture) {}

  // The pods start now, each on the best node. On failure everything is rolled back, and `failed` (if
  // given) is the pod that found no node.
  bool AllocateAll(state::Transaction& txn, const std::vector<state::PodId>& pods,
                   state::PodId* failed);

  // The pods are promised room that is idle, being released, or on order: those that would have to wait
  // make the whole step wait. Prefers real nodes to ordered ones, then the score.
  bool PromiseAll(state::Transaction& txn, const std::vector<state::PodId>& pods);

  // kNoId if the class fits nowhere now.
  state::NodeId BestNow(state::PodClassId pod_class);
  state::NodeId BestFuture(state::PodClassId pod_class);

  [[nodiscard]] uint64_t work() const { return work_; }
  void ResetWork() { work_ = 0; }

 private:
  state::ClusterState& state_;
  const framework::Framework& framework_;
  // For classes that depend on other nodes too: every node is asked.
  state::NodeId Scan(state::PodClassId pod_class, framework::Room room);

  NodeOrders now_, future_;
  uint64_t work_ = 0;
};

}  // namespace fairlead::engine
