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

}  // namespace fairlead::engine
