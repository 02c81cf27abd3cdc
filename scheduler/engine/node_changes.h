// Which nodes changed, in order, for what renews its knowledge of a node only when it is asked:
// node orders, node fits, diagnosis. They are many (one for each class of pods) and most are not
// asked between two changes, so a change costs one number here, and a reader the changes since its
// last look.
//
// Nodes that exist only inside a Transaction (NodeKind::kVirtual) are left out.
//
// Thread-safety: the state's. Complexity: O(1). Memory: at most kLength numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodeChanges final : public state::StateSubscriber {
 public:
  static constexpr uint64_t kLength = uint64_t{1} << 16;

  explicit NodeChanges(const state::ClusterState& state) : state_(state) {}

  // Changes have the numbers start() .. end()-1, oldest first. A reader that has seen those below
  // `start()` at most has to look at every node; 0 is below it for ever.
  [[nodiscard]] uint64_t start() const { return start_; }
  [[nodiscard]] uint64_t end() const { return end_; }
  // The changes from this number on are of what is on nodes, and not of their objects.
  [[nodiscard]] uint64_t object_end() const { return object_end_; }
  [[nodiscard]] state::NodeId At(uint64_t number) const { return ring_[number % kLength]; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;

 private:
  const state::ClusterState& state_;
  std::vector<state::NodeId> ring_;
  uint64_t start_ = 1, end_ = 1, object_end_ = 1;
};

}  // namespace fairlead::engine
