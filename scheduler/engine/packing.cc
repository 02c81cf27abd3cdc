#include "scheduler/engine/packing.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "scheduler/model/scarcity.h"

namespace fairlead::engine {
namespace {

class Search {
 public:
  Search(state::Transaction& txn, const std::vector<PackingClass>& classes,
         absl::FunctionRef<bool(state::PodId, state::NodeId)> place, int64_t& tries)
      : txn_(txn), classes_(classes), place_(place), tries_(tries) {}

  // Pods from `pod` of class `at` on; `from` is the first node that it may take.
  bool From(size_t at, size_t pod, size_t from) {
    if (at == classes_.size()) return true;
    const PackingClass& alike = classes_[at];
    if (pod == alike.pods.size()) return From(at + 1, 0, 0);
    const auto mark = txn_.Mark();
    for (size_t i = from; i < alike.nodes.size(); ++i) {
      if (tries_ <= 0) return false;
      --tries_;
      if (!place_(alike.pods[pod], alike.nodes[i])) continue;
      if (From(at, pod + 1, i)) return true;
      txn_.RollbackTo(mark);
    }
    return false;
  }

 private:
  state::Transaction& txn_;
  const std::vector<PackingClass>& classes_;
  absl::FunctionRef<bool(state::PodId, state::NodeId)> place_;
  int64_t& tries_;
};

}  // namespace

std::vector<PackingClass> ByClass(const state::ClusterState& state,
                                  const std::vector<state::PodId>& pods) {
  std::vector<PackingClass> classes;
  absl::flat_hash_map<state::PodClassId, size_t> places;
  for (const state::PodId pod : pods) {
    const auto [it, added] = places.try_emplace(state.pod(pod).pod_class, classes.size());
    if (added) classes.emplace_back();
    classes[it->second].pods.push_back(pod);
  }
  return classes;
}

void SortBySize(const state::ClusterState& state, std::vector<state::PodId>& pods) {
  std::stable_sort(pods.begin(), pods.end(), [&state](state::PodId a, state::PodId b) {
    return model::IsLarger(state.class_of(a).charge, state.class_of(b).charge);
  });
}

PackingEnd Pack(state::Transaction& txn, std::vector<PackingClass> classes,
                absl::FunctionRef<bool(state::PodId, state::NodeId)> place, int64_t& tries) {
  std::stable_sort(
      classes.begin(), classes.end(),
      [](const PackingClass& a, const PackingClass& b) { return a.nodes.size() < b.nodes.size(); });
  if (!classes.empty() && classes.front().nodes.empty()) return PackingEnd::kNone;
  Search search(txn, classes, place, tries);
  if (search.From(0, 0, 0)) return PackingEnd::kFound;
  return tries <= 0 ? PackingEnd::kGivenUp : PackingEnd::kNone;
}

}  // namespace fairlead::engine
