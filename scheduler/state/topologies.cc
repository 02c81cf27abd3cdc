// Topologies of ClusterState: which node labels make domains.
#include <algorithm>

#include "scheduler/state/cluster_state.h"
#include "scheduler/state/rows.h"

namespace fairlead::state {
namespace {

using Level = model::Topology::Level;

bool SameLevels(const std::vector<Level>& a, const std::vector<Level>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Level& x, const Level& y) {
    return x.node_label == y.node_label && x.alias == y.alias;
  });
}

}  // namespace

Change ClusterState::UpsertTopology(const model::Topology& topology) {
  Change change;
  const auto [it, added] = topology_index_.try_emplace(topology.meta.name, kNoId);
  if (added) it->second = TakeRow(topologies_, free_topologies_);
  const TopologyId id = it->second;
  model::Topology& row = topologies_[id];
  const bool same =
      !added && SameLevels(row.levels, topology.levels) && row.invalid == topology.invalid;
  row = topology;
  if (same) return change;
  Tell({.kind = StateChange::Kind::kTopology, .row = id});
  change.policy = true;
  return change;
}

Change ClusterState::RemoveTopology(absl::string_view name, absl::string_view uid) {
  Change change;
  const auto it = topology_index_.find(name);
  if (it == topology_index_.end()) return change;
  const TopologyId id = it->second;
  const std::string& known = topologies_[id].meta.uid;
  if (!uid.empty() && !known.empty() && known != uid) return change;
  Tell({.kind = StateChange::Kind::kTopologyGone, .row = id});
  topology_index_.erase(it);
  topologies_[id] = model::Topology{};
  free_topologies_.push_back(id);
  change.policy = true;
  return change;
}

const model::Topology* ClusterState::FindTopology(absl::string_view name) const {
  const auto it = topology_index_.find(name);
  return it == topology_index_.end() ? nullptr : &topologies_[it->second];
}

}  // namespace fairlead::state
