// Which nodes changed, in order, for what renews its knowledge of a node only when it is asked:
// node orders, node fits, diagnosis. They are many (one for each class of pods) and most are not
// asked between two changes, so a change costs one number here, and a reader the changes since its
// last look.
//
// Nodes that exist only inside a Transaction (NodeKind::kVirtual) are left out unless asked for.
//
// Thread-safety: the state's. Complexity: O(1); ForEachNode O(changes). Memory: ChangeRing's.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "scheduler/engine/change_ring.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodeChanges final : public state::StateSubscriber {
 public:
  enum class Of : uint8_t { kRealNodes, kAllNodes };
  explicit NodeChanges(const state::ClusterState& state, Of of = Of::kRealNodes)
      : state_(state), of_(of) {}

  // As in ChangeRing.
  [[nodiscard]] uint64_t start() const { return ring_.start(); }
  [[nodiscard]] uint64_t end() const { return ring_.end(); }
  // The changes from this number on are of what is on nodes, and not of their objects.
  [[nodiscard]] uint64_t object_end() const { return object_end_; }
  [[nodiscard]] state::NodeId At(uint64_t number) const { return ring_.At(number); }
  // Each node of the changes from `first` until before `last`, once, until `use` says false. A
  // search for victims changes the same few nodes over and over. False: `use` said so.
  bool ForEachNode(uint64_t first, uint64_t last, absl::FunctionRef<bool(state::NodeId)> use) const;

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;

 private:
  const state::ClusterState& state_;
  const Of of_;
  ChangeRing<state::NodeId> ring_;
  uint64_t object_end_ = 1;
  // Of ForEachNode: by node, the call that has used it.
  mutable std::vector<uint64_t> used_;
  mutable uint64_t call_ = 0;
};

}  // namespace fairlead::engine
