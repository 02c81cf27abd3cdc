// Whether any capacity is promised or on its way: pods that terminate or are promised a place, and
// nodes that take no bindings yet. Without any, what fits in the future fits now.
//
// Ownership: borrows the state; to be subscribed by its owner, at once. Thread-safety: the owner's
// thread. Complexity: O(1); the first count O(pods + nodes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class ExpectedCapacity final : public state::StateSubscriber {
 public:
  explicit ExpectedCapacity(const state::ClusterState& state);

  [[nodiscard]] bool Any() const { return pods_ + nodes_ > 0; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override {
    return {state::StateChange::Kind::kPodMoved, state::StateChange::Kind::kNodeObject};
  }
  // The first difference from a recount, or empty. O(pods + nodes).
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  void Count(state::NodeId node);

  const state::ClusterState& state_;
  int64_t pods_ = 0, nodes_ = 0;
  std::vector<bool> counted_;  // by NodeId
};

}  // namespace fairlead::engine
