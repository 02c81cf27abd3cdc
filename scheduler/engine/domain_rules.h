// What nodes that are bought for a workload with topology constraints must have in common.
//
// A node that does not exist yet is in a domain only as far as the labels are known that it will
// bear: every level of the topology has to be among them, or the node would be outside the tree
// (topology.h), whatever level is asked for. Its host name is known too, and makes it a domain of
// its own. So there is a problem, and nothing is to be bought, where
//   - no kind of node on offer has the labels of all levels,
//   - pods of the set run already, and each node is a domain of the required level, or
//   - they all run outside the tree.
// In every other case the rule says what to buy: which labels, down to which level equal, and the
// values where pods of the set run.
//
// Thread-safety: the owner's thread; keeps nothing of the state. Complexity: O(sets * levels +
// pods * depth) to make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/state/cluster_state.h"
#include "scheduler/verdict/domains.h"

namespace fairlead::engine {

// The labels of nodes that could be bought: a sorted list for each kind of node.
using OfferedLabels = std::vector<std::vector<std::string>>;

// A set of the workload asks for a level of a topology, required or preferred.
bool BoundToTopology(const state::Workload& workload);

class DomainRules {
 public:
  DomainRules(const state::ClusterState& state, const state::Workload& workload,
              const OfferedLabels& offered);

  struct Problem {
    std::string what;    // one clause for people; empty: there is none
    std::string advice;  // what the user could change; may be empty
  };
  // Why no node that could be bought would help a pod of the set: its own problem, or the first of
  // those around it.
  [[nodiscard]] const Problem& ProblemOf(int32_t set) const;
  [[nodiscard]] const std::vector<verdict::DomainRule>& rules() const { return rules_; }
  // The innermost rule of the set, by index; -1: none.
  [[nodiscard]] int32_t RuleOf(int32_t set) const { return rule_of_[static_cast<size_t>(set)]; }

 private:
  void AddSet(const state::ClusterState& state, const state::Workload& workload, int32_t set,
              int32_t around, const OfferedLabels& offered);
  static verdict::DomainRule MakeRule(const model::Topology& topology, const state::GangSet& set,
                                      int32_t around);
  static Problem FindProblem(const model::Topology& topology,
                             const model::TopologyConstraint& asked,
                             const verdict::DomainRule& rule, const OfferedLabels& offered);
  Problem Pin(const state::ClusterState& state, const state::Workload& workload, int32_t set,
              verdict::DomainRule& rule) const;

  std::vector<verdict::DomainRule> rules_;  // those around others first
  std::vector<int32_t> rule_of_;            // by set
  std::vector<Problem> problem_of_;         // by set
};

}  // namespace fairlead::engine
