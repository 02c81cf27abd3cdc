#include "scheduler/engine/node_fits.h"

#include <algorithm>

namespace fairlead::engine {

NodeFits::Wanted NodeFits::WantedBy(const std::vector<state::PodId>& pods) const {
  std::map<state::PodClassId, int64_t> counts;
  for (const state::PodId pod : pods) ++counts[state_.pod(pod).pod_class];
  return {counts.begin(), counts.end()};
}

bool NodeFits::Possible(const Wanted& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [this](const Key& key) { return Total(key) >= key.second; });
}

int64_t NodeFits::Total(const Key& key) {
  auto [it, added] = rows_.try_emplace(key);
  Row& row = it->second;
  row.last_use = ++uses_;
  const std::shared_ptr<const model::PodSpec>& spec = state_.pod_class(key.first).spec;
  if (added || row.spec != spec || row.log_position < state_.node_log_start()) {
    row.spec = spec;
    row.total = 0;
    row.by_node.clear();
    row.log_position = state_.node_log_end();
    for (const auto& [name, node] : state_.nodes_by_name()) {
      // The log does not say when such a node goes.
      if (state_.node(node).kind != state::NodeKind::kVirtual) Renew(key, row, node);
    }
    if (rows_.size() > kMaxRows) DropOldest();
    return row.total;
  }
  for (; row.log_position < state_.node_log_end(); ++row.log_position) {
    Renew(key, row, state_.node_log_at(row.log_position));
  }
  return row.total;
}

void NodeFits::Renew(const Key& key, Row& row, state::NodeId id) const {
  if (id >= row.by_node.size()) row.by_node.resize(id + 1, 0);
  const int64_t fits = feasibility_.MostThatFit(key.first, id, key.second);
  row.total += fits - row.by_node[id];
  row.by_node[id] = fits;
}

void NodeFits::DropOldest() {
  const auto oldest = std::min_element(
      rows_.begin(), rows_.end(),
      [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
  rows_.erase(oldest);
}

}  // namespace fairlead::engine
