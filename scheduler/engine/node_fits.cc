#include "scheduler/engine/node_fits.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace fairlead::engine {

NodeFits::Wanted NodeFits::WantedBy(const std::vector<state::PodId>& pods) const {
  std::map<state::PodClassId, int64_t> counts;
  for (const state::PodId pod : pods) ++counts[state_.pod(pod).pod_class];
  return {counts.begin(), counts.end()};
}

bool NodeFits::Possible(const Wanted& wanted, const NodeSet* within, uint64_t& work) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Key& key) {
    const Row& row = CatchUp(key, work);
    if (within == nullptr || row.total < key.second) return row.total >= key.second;
    int64_t total = 0;
    for (const state::NodeId node : within->nodes()) {
      if (node < row.by_node.size()) total += row.by_node[node].fits;
      if (total >= key.second) return true;
    }
    return false;
  });
}

state::ChangeKinds NodeFits::Kinds() const {
  return {state::StateChange::Kind::kClassGone, state::StateChange::Kind::kClassAnswers};
}

void NodeFits::OnChange(const state::StateChange& change) {
  const auto first = rows_.lower_bound({change.row, 0});
  auto last = first;
  while (last != rows_.end() && last->first.first == change.row) ++last;
  rows_.erase(first, last);
}

const NodeFits::Row& NodeFits::CatchUp(const Key& key, uint64_t& work) {
  Row& row = rows_[key];
  row.last_use = ++uses_;
  if (row.seen < changes_.start()) {
    row.total = 0;
    row.by_node.clear();
    row.seen = changes_.end();
    for (const auto& [name, node] : state_.nodes_by_name()) {
      if (state_.node(node).kind != state::NodeKind::kVirtual) Renew(key, row, node, work);
    }
    if (rows_.size() > kMaxRows) DropOldest();
    return row;
  }
  changes_.ForEachNode(row.seen, changes_.end(), [&](state::NodeId node) {
    Renew(key, row, node, work);
    return true;
  });
  row.seen = changes_.end();
  return row;
}

void NodeFits::Renew(const Key& key, Row& row, state::NodeId id, uint64_t& work) const {
  if (id >= row.by_node.size()) row.by_node.resize(id + 1);
  Slot& slot = row.by_node[id];
  const state::NodeInfo& node = state_.node(id);
  // A node that changed several times is among the changes as often.
  if (slot.version == node.version) return;
  ++work;
  slot.version = node.version;
  if (slot.object_version != node.object_version) {
    slot.object_version = node.object_version;
    slot.suits = feasibility_.Suits(key.first, id);
  }
  const int64_t fits = slot.suits ? feasibility_.MostByAmounts(key.first, id, key.second) : 0;
  row.total += fits - slot.fits;
  slot.fits = fits;
}

std::string NodeFits::CheckConsistency() const {
  for (const auto& [key, row] : rows_) {
    if (row.seen < changes_.start()) continue;
    absl::flat_hash_set<state::NodeId> changed;
    for (uint64_t i = row.seen; i < changes_.end(); ++i) changed.insert(changes_.At(i));
    int64_t total = 0;
    for (const Slot& slot : row.by_node) total += slot.fits;
    if (total != row.total) return absl::StrCat("node fits of class ", key.first, ": total");
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (state_.node(id).kind == state::NodeKind::kVirtual || changed.contains(id)) continue;
      const int64_t known = id < row.by_node.size() ? row.by_node[id].fits : 0;
      if (known != feasibility_.MostThatFit(key.first, id, key.second)) {
        return absl::StrCat("node fits of class ", key.first, ": node ", name);
      }
    }
  }
  return "";
}

void NodeFits::DropOldest() {
  const auto oldest = std::min_element(
      rows_.begin(), rows_.end(),
      [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
  rows_.erase(oldest);
}

}  // namespace fairlead::engine
