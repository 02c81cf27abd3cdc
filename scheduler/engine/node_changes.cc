#include "scheduler/engine/node_changes.h"

#include <algorithm>

namespace fairlead::engine {

using Kind = state::StateChange::Kind;

state::ChangeKinds NodeChanges::Kinds() const {
  return {Kind::kNodeUsage, Kind::kNodeObject, Kind::kNodesRanked};
}

void NodeChanges::OnChange(const state::StateChange& change) {
  if (change.kind == Kind::kNodesRanked) {
    // Every order of nodes is another one.
    start_ = object_end_ = ++end_;
    return;
  }
  if (state_.node(change.to_node).kind == state::NodeKind::kVirtual) return;
  const auto at = static_cast<size_t>(end_ % kLength);
  if (at >= ring_.size())
    ring_.resize(std::min(kLength, std::max<uint64_t>(at + 1, 2 * ring_.size())));
  ring_[at] = change.to_node;
  ++end_;
  if (change.kind == Kind::kNodeObject) object_end_ = end_;
  if (end_ - start_ > kLength) ++start_;
}

}  // namespace fairlead::engine
