#include "scheduler/engine/diagnosis.h"

#include <algorithm>
#include <map>

namespace fairlead::engine {

const Diagnosis& Diagnoser::For(state::PodClassId pod_class) {
  constexpr size_t kMaxCached = 1024;
  if (cache_.size() > kMaxCached) cache_.clear();
  std::unique_ptr<Cached>& slot = cache_[pod_class];
  const state::PodClass& wanted = state_.pod_class(pod_class);
  const uint64_t version = state_.node_log_end();
  if (slot != nullptr && slot->version == version && slot->spec == wanted.spec) {
    return slot->diagnosis;
  }
  slot = std::make_unique<Cached>();
  slot->version = version;
  slot->spec = wanted.spec;
  Diagnosis& diagnosis = slot->diagnosis;

  struct Tally {
    int64_t nodes = 0;
    std::map<std::string, int64_t> smallest_missing;
  };
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  framework::Context now{state_, wanted, pod_class, framework::Room::kNow};
  framework::Context empty{state_, wanted, pod_class, framework::Room::kEmpty};
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    // Ordered nodes are told about by the requests, not counted among the nodes that refuse.
    if (!node.exists || node.kind != state::NodeKind::kReal || !node.usable) continue;
    ++diagnosis.nodes;
    if (framework_.FilterNodeObject(empty, node, nullptr)) {
      diagnosis.suits_some_node = true;
      if (framework_.Filter(empty, node, nullptr)) diagnosis.fits_some_node_empty = true;
    }
    framework::Status why;
    if (framework_.Filter(now, node, &why)) continue;
    Tally& tally = tallies[{std::string(why.plugin), why.reason}];
    ++tally.nodes;
    for (const auto& missing : why.missing) {
      const std::string& resource = state_.resource_names().Name(missing.resource);
      auto [it, added] = tally.smallest_missing.try_emplace(resource, missing.amount);
      if (!added) it->second = std::min(it->second, missing.amount);
    }
  }
  for (auto& [key, tally] : tallies) {
    verdict::FailedPredicate predicate{key.first, key.second, tally.nodes, {}};
    for (const auto& [resource, amount] : tally.smallest_missing) {
      predicate.missing.push_back({resource, amount});
    }
    diagnosis.predicates.push_back(std::move(predicate));
  }
  std::stable_sort(diagnosis.predicates.begin(), diagnosis.predicates.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  return diagnosis;
}

}  // namespace fairlead::engine
