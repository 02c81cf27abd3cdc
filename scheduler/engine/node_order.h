// The nodes on which a pod of one class fits (in one Room), best first, kept up to date by looking
// only at nodes that changed: the reason why a placement costs a logarithm and not a scan.
//
// An order of Holds::kIdle has only nodes with idle capacity for the pod, promised or not. KAI
// calls a node available by what is idle there (facts 3.8), and so several promises may count on
// it.
//
// Works for classes whose filters and scores depend on the node alone (framework::NodeLocal).
// Order: usable nodes before ordered ones, score descending, then node name.
//
// Thread-safety: the owner's thread. Complexity: O(nodes log nodes) to build, O(changed log nodes)
// to catch up, O(1) for the best; a node that changed and is still the best costs no logarithm.
// Memory: 40 bytes a node and class, 32 more for each node that fits; the least recently used
// classes are dropped beyond kMaxClasses.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodeOrders {
 public:
  static constexpr size_t kMaxClasses = 128;

  enum class Holds : uint8_t { kAllThatFit, kIdle };

  NodeOrders(const state::ClusterState& state, const framework::Framework& framework,
             framework::Room room, Holds holds = Holds::kAllThatFit)
      : state_(state), framework_(framework), room_(room), holds_(holds) {}

  // Whether a usable node, which passes the filters for Room::kFuture, has idle room for the class
  // if promises do not count. Shares of GPUs and claims of devices respect promises.
  static bool FitsIdle(const framework::Framework& framework, const framework::Context& future,
                       const state::NodeInfo& node);

  struct Best {
    state::NodeId node = state::kNoId;  // kNoId: it fits nowhere
    bool ordered = false;               // the node is not usable yet
    int64_t score = 0;
  };
  // The best node for a pod of the class. `work` grows by the filter evaluations made.
  Best BestFor(state::PodClassId pod_class, uint64_t& work);
  // The same without the nodes that `passed_over` is true for; O(those).
  Best BestFor(state::PodClassId pod_class, uint64_t& work,
               absl::FunctionRef<bool(state::NodeId)> passed_over);

 private:
  struct Entry {
    bool ordered;  // the node is not usable yet
    int64_t minus_score;
    uint64_t name_rank;
    state::NodeId node;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  // What was last found out about one node.
  struct Slot {
    uint64_t version = 0;         // of the node then; 0: never looked at
    uint64_t object_version = 0;  // of its object
    int64_t minus_score = 0;
    uint64_t name_rank = 0;
    bool object_fits = false;  // by the filters that read the object alone
    bool fits = false;
    bool ordered = false;
    [[nodiscard]] Entry AsEntry(state::NodeId node) const {
      return {ordered, minus_score, name_rank, node};
    }
  };
  struct Order {
    std::shared_ptr<const model::PodSpec> spec;  // the class id may be dealt to another class
    // The best fitting node, kNoId if none fits. Not in `others`: it is the one that changes most.
    Entry best{false, 0, 0, state::kNoId};
    absl::btree_set<Entry> others;
    std::vector<Slot> slots;  // by NodeId
    uint64_t log_position = 0;
    uint64_t rank_epoch = 0;
    std::list<state::PodClassId>::iterator recency;
  };

  static void Put(Order& order, const Entry& entry);
  static void Take(Order& order, const Entry& entry);
  void Build(Order& order, state::PodClassId pod_class, uint64_t& work);
  void Renew(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const framework::Room room_;
  const Holds holds_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Order>> orders_;
  std::list<state::PodClassId> recency_;  // most recent first
};

}  // namespace fairlead::engine
