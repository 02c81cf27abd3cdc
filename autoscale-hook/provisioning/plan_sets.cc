#include "autoscale-hook/provisioning/plan_sets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "autoscale-hook/machines/launch_set.h"

namespace fairlead::hook {
namespace {

// Disjoint sets of nodes; the representative of a set is its first node.
class NodeSets {
 public:
  explicit NodeSets(size_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t Find(size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void Unite(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

}  // namespace

void MarkPlanSets(const Plan& plan, const std::function<bool(size_t outcome)>& is_whole,
                  std::vector<model::NodeRequest>& requests, DerivedNames* names) {
  NodeSets sets(plan.nodes.size());
  std::vector<bool> atomic(plan.nodes.size(), false);
  std::map<size_t, size_t> first_node;  // of an outcome
  for (size_t node = 0; node < plan.nodes.size(); ++node) {
    for (const auto& [outcome, pods] : plan.nodes[node].pods_of_item) {
      if (!is_whole(outcome)) continue;
      atomic[node] = true;
      sets.Unite(node, first_node.try_emplace(outcome, node).first->second);
    }
  }
  std::map<size_t, std::vector<model::NodeRequest*>> whole;  // by their first node
  std::vector<model::NodeRequest*> rest;
  for (size_t node = 0; node < plan.nodes.size(); ++node) {
    (atomic[node] ? whole[sets.Find(node)] : rest).push_back(&requests[node]);
  }
  for (const auto& [first, members] : whole) MarkLaunchSet(members, /*atomic=*/true, names);
  MarkLaunchSet(rest, /*atomic=*/false, names);
}

}  // namespace fairlead::hook
