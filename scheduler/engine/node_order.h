// The nodes on which a pod of one class fits (in one Room), best first, kept up to date by looking only at nodes
// that changed: the reason why a placement costs a logarithm and not a scan.
//
// Works for classes whose filters and scores depend on the node alone (framework::NodeLocal). Order:
// usable nodes before ordered ones, score descending, then node name.
//
// Thread-safety: the owner's thread. Complexity: O(nodes log nodes) to build, O(changed log nodes) to
// catch up, O(1) for the best. Memory: about 60 bytes a fitting node and class; the least recently used
// classes are dropped beyond kMaxClasses.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodeOrders {
 public:
  static constexpr size_t kMaxClasses = 128;

  NodeOrders(const state::ClusterState& state, const framework::Framework& framework,
             framework::Room room)
      : state_(state), framework_(framework), room_(room) {}

  // The best node for a pod of the class; kNoId if it fits nowhere. `work` grows by the filter
  // evaluations made.
  state::NodeId Best(state::PodClassId pod_class, uint64_t& work);

 private:
  struct Entry {
    bool ordered;  // the node is not usable yet
    int64_t minus_score;
    uint64_t name_rank;
    state::NodeId node;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Order {
    std::shared_ptr<const model::PodSpec> spec;  // the class id may be dealt to another class
    absl::btree_set<Entry> entries;
    std::vector<Entry> by_node;  // node == kNoId: not in `entries`
    uint64_t log_position = 0;
    uint64_t rank_epoch = 0;
    std::list<state::PodClassId>::iterator recency;
  };

  void Build(Order& order, state::PodClassId pod_class, uint64_t& work);
  void Renew(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const framework::Room room_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Order>> orders_;
  std::list<state::PodClassId> recency_;  // most recent first
};

}  // namespace fairlead::engine
