// The second attempt for sub-groups with topology constraints of their own. The first one gives
// each sub-group, in its turn, the first domain that takes it; that may be the only one that
// another sub-group fits into.
//
// Here those with the innermost level come first, of these the largest. If one finds no domain, the
// one before it goes to its next domain, until all have a place or the bound is reached. The levels
// inside a sub-group are not taken back for its siblings.
#include <algorithm>
#include <utility>

#include "scheduler/engine/placer.h"

namespace fairlead::engine {
namespace {

int64_t CountPods(const StepNode& node) {
  auto pods = static_cast<int64_t>(node.pods.size());
  for (const StepNode& child : node.children) pods += CountPods(child);
  return pods;
}

// 0: no constraint; 1: the outermost level.
size_t LevelOf(const state::ClusterState& state, const model::TopologyConstraint& constraint) {
  const model::Topology* topology = state.FindTopology(constraint.topology);
  if (topology == nullptr) return 0;
  return DepthOf(*topology, constraint.required_level.empty() ? constraint.preferred_level
                                                              : constraint.required_level);
}

}  // namespace

std::vector<const StepNode*> Placer::HardestFirst(const state::Workload& workload,
                                                  const StepNode& node) const {
  struct Sibling {
    const StepNode* node;
    size_t level;
    int64_t pods;
  };
  std::vector<Sibling> siblings;
  for (const StepNode& child : node.children) {
    siblings.push_back({&child, LevelOf(state_, ConstraintOf(workload, child)), CountPods(child)});
  }
  std::vector<const StepNode*> sets;
  if (siblings.size() < 2 || std::none_of(siblings.begin(), siblings.end(),
                                          [](const Sibling& s) { return s.level > 0; })) {
    return sets;
  }
  std::stable_sort(siblings.begin(), siblings.end(), [](const Sibling& a, const Sibling& b) {
    return a.level != b.level ? a.level > b.level : a.pods > b.pods;
  });
  for (const Sibling& sibling : siblings) sets.push_back(sibling.node);
  return sets;
}

bool Placer::PlaceChildren(Attempt& attempt, const StepNode& node, const Area& area) {
  const Attempt::Checkpoint before = attempt.Mark();
  const bool placed =
      std::all_of(node.children.begin(), node.children.end(),
                  [&](const StepNode& child) { return PlaceSet(attempt, child, area); });
  if (placed || attempt.mode != Mode::kStart) return placed;
  const std::vector<const StepNode*> sets = HardestFirst(attempt.workload, node);
  if (sets.empty()) return false;
  const Placement first = attempt.result;  // its reasons are told if this fails too
  attempt.RollbackTo(before);
  int64_t tries = std::min(kMaxPackingTries, packing_tries_);
  const int64_t had = tries;
  const bool found = PlaceSiblings(attempt, sets, 0, area, tries);
  packing_tries_ -= had - tries;
  const bool promised = attempt.result.promised;
  attempt.result = found ? Placement{} : first;
  if (found) attempt.result.promised = promised;
  return found;
}

bool Placer::PlaceSiblings(Attempt& attempt, const std::vector<const StepNode*>& sets, size_t next,
                           const Area& area, int64_t& tries) {
  if (next == sets.size()) return true;
  const StepNode& set = *sets[next];
  if (!ConstraintOf(attempt.workload, set).topology.empty()) {
    return PlaceBoundSibling(attempt, sets, next, area, tries);
  }
  const Attempt::Checkpoint before = attempt.Mark();
  if (PlaceMembers(attempt, set, area) && PlaceSiblings(attempt, sets, next + 1, area, tries)) {
    return true;
  }
  attempt.RollbackTo(before);
  return false;
}

bool Placer::PlaceBoundSibling(Attempt& attempt, const std::vector<const StepNode*>& sets,
                               size_t next, const Area& area, int64_t& tries) {
  const StepNode& set = *sets[next];
  const model::TopologyConstraint& constraint = ConstraintOf(attempt.workload, set);
  const PodsOfSet of = PodsOf(attempt.workload, set);
  if (of.to_place.empty()) return PlaceSiblings(attempt, sets, next + 1, area, tries);
  TopologyAnswer answer = topology_.Candidates(constraint, area.nodes, of.to_place, of.placed,
                                               framework::Capacity::kFuture);
  OwnDomainsFirst(attempt.workload, constraint, answer.candidates);
  // What a look at the domains of the next one costs.
  const auto nodes = static_cast<int64_t>(area.nodes != nullptr ? area.nodes->nodes().size()
                                                                : state_.node_count());
  const Attempt::Checkpoint before = attempt.Mark();
  for (const TopologyCandidate& domain : answer.candidates) {
    if (!PlaceInDomain(attempt, set, area, domain, /*only_now=*/false)) continue;
    if (PlaceSiblings(attempt, sets, next + 1, area, tries)) return true;
    attempt.RollbackTo(before);
    tries -= nodes + std::ssize(of.to_place);
    if (tries <= 0) return false;
  }
  return false;
}

}  // namespace fairlead::engine
