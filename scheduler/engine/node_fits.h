// On how many places pods of a class could stand if every promise of room were kept (idle, being
// released, on order), counted over all nodes. An index over Feasibility::MostThatFit: a necessary
// condition that spares a victim search most attempts at placing, O(1) to read, and kept from
// search to search by looking only at nodes that changed.
//
// Ownership: borrows state, framework and changes. Thread-safety: the owner's thread. Complexity:
// O(nodes) for a class and count not asked for before, then O(changed nodes). Memory: 32 bytes a
// node for each of the kMaxRows used last.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/engine/topology.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodeFits final : public state::StateSubscriber {
 public:
  static constexpr size_t kMaxRows = 64;

  // Both this and `changes` are to be subscribed by the owner.
  NodeFits(const state::ClusterState& state, const framework::Framework& framework,
           const NodeChanges& changes)
      : state_(state), feasibility_(state, framework), changes_(changes) {}

  // The classes of a step with the number of its pods in each, ascending by class.
  using Wanted = std::vector<std::pair<state::PodClassId, int64_t>>;
  [[nodiscard]] Wanted WantedBy(const std::vector<state::PodId>& pods) const;

  // True if each class alone finds enough places on these nodes (null: on all); false: the step
  // certainly does not fit there. `work` grows by the number of nodes counted anew. With `within`
  // O(nodes in it) more.
  bool Possible(const Wanted& wanted, const NodeSet* within, uint64_t& work);

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // What is remembered of nodes that have not changed since, against a count; the first difference,
  // or empty. O(rows * nodes).
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  // What was last found out about one node.
  struct Slot {
    uint64_t version = 0;         // of the node then; 0: never looked at
    uint64_t object_version = 0;  // of its object
    bool suits = false;           // its object
    int64_t fits = 0;             // at most what is wanted
  };
  struct Row {
    uint64_t seen = 0;  // the first of NodeChanges that is not; 0: not counted yet
    uint64_t last_use = 0;
    int64_t total = 0;
    std::vector<Slot> by_node;
  };
  using Key = std::pair<state::PodClassId, int64_t>;

  // The row of the key, as the nodes are now.
  const Row& CatchUp(const Key& key, uint64_t& work);
  void Renew(const Key& key, Row& row, state::NodeId node, uint64_t& work) const;
  void DropOldest();

  const state::ClusterState& state_;
  Feasibility feasibility_;
  const NodeChanges& changes_;
  std::map<Key, Row> rows_;
  uint64_t uses_ = 0;
};

}  // namespace fairlead::engine
