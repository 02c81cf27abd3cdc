#include "scheduler/engine/node_changes.h"

namespace fairlead::engine {

using Kind = state::StateChange::Kind;

state::ChangeKinds NodeChanges::Kinds() const {
  return {Kind::kNodeUsage, Kind::kNodeObject, Kind::kNodesRanked};
}

void NodeChanges::OnChange(const state::StateChange& change) {
  if (change.kind == Kind::kNodesRanked) {
    // Every order of nodes is another one.
    ring_.StartAnew();
    object_end_ = ring_.end();
    return;
  }
  if (of_ == Of::kRealNodes && state_.node(change.to_node).kind == state::NodeKind::kVirtual) {
    return;
  }
  ring_.Add(change.to_node);
  if (change.kind == Kind::kNodeObject) object_end_ = ring_.end();
}

bool NodeChanges::ForEachNode(uint64_t first, uint64_t last,
                              absl::FunctionRef<bool(state::NodeId)> use) const {
  const uint64_t call = ++call_;
  for (uint64_t i = first; i < last; ++i) {
    const state::NodeId node = At(i);
    if (node >= used_.size()) used_.resize(node + 1);
    if (used_[node] == call) continue;
    used_[node] = call;
    if (!use(node)) return false;
  }
  return true;
}

}  // namespace fairlead::engine
