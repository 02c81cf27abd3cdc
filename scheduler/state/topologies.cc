// Topologies of ClusterState: which node labels make domains.
#include <algorithm>

#include "scheduler/state/cluster_state.h"

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
  auto [it, added] = topologies_.try_emplace(topology.meta.name);
  const bool same = !added && SameLevels(it->second.levels, topology.levels) &&
                    it->second.invalid == topology.invalid;
  it->second = topology;
  if (same) return change;
  CollectTopologyLabels();
  ++version_;
  change.policy = true;
  return change;
}

Change ClusterState::RemoveTopology(absl::string_view name, absl::string_view uid) {
  Change change;
  auto it = topologies_.find(name);
  if (it == topologies_.end()) return change;
  const std::string& known = it->second.meta.uid;
  if (!uid.empty() && !known.empty() && known != uid) return change;
  topologies_.erase(it);
  CollectTopologyLabels();
  ++version_;
  change.policy = true;
  return change;
}

const model::Topology* ClusterState::FindTopology(absl::string_view name) const {
  auto it = topologies_.find(name);
  return it == topologies_.end() ? nullptr : &it->second;
}

void ClusterState::CollectTopologyLabels() {
  ++topology_version_;
  topology_labels_.clear();
  for (const auto& [name, topology] : topologies_) {
    for (const Level& level : topology.levels) topology_labels_.push_back(level.node_label);
  }
  std::sort(topology_labels_.begin(), topology_labels_.end());
  topology_labels_.erase(std::unique(topology_labels_.begin(), topology_labels_.end()),
                         topology_labels_.end());
}

bool ClusterState::TopologyLabelsDiffer(const model::StringMap& a,
                                        const model::StringMap& b) const {
  return std::any_of(topology_labels_.begin(), topology_labels_.end(),
                     [&](const std::string& label) {
                       const std::string* in_a = a.Find(label);
                       const std::string* in_b = b.Find(label);
                       return in_a == nullptr || in_b == nullptr ? in_a != in_b : *in_a != *in_b;
                     });
}

}  // namespace fairlead::state
