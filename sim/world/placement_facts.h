// Which nodes a pod may run on beside their amounts: node selector, required node affinity,
// required pod affinity and anti-affinity, hard topology spread. Read from the JSON by code that
// shares nothing with the product's.
//
// Pods of these worlds are told apart by label "app": terms name one value of it, in the pod's own
// namespace. What says more is `unknown`, and not judged.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/world/json.h"

namespace fairlead::sim::world {

using Labels = std::map<std::string, std::string>;

struct NodeExpression {
  std::string key, op;  // In | NotIn | Exists | DoesNotExist
  std::vector<std::string> values;
};

struct PodTerm {
  std::string app, topology_key;
};

struct SpreadRule {
  std::string app, topology_key;
  int64_t max_skew = 1;
};

struct Placement {
  Labels selector;
  std::vector<std::vector<NodeExpression>> node_terms;  // one of them, with all of its expressions
  std::vector<PodTerm> near, apart;                     // pod affinity and anti-affinity
  std::vector<SpreadRule> spread;
  bool unknown = false;
  std::string text;  // equal for pods that may run on the same nodes
  [[nodiscard]] bool names_pods() const {
    return !near.empty() || !apart.empty() || !spread.empty();
  }
};

// The terms of a core.v1.NodeSelector. `unknown` is set if they select by fields.
std::vector<std::vector<NodeExpression>> ReadNodeSelector(const Json* selector, bool& unknown);
// One of the terms matches; an empty one does not.
bool AnyTermMatches(const std::vector<std::vector<NodeExpression>>& terms, const Labels& node);

// Null: the pod may run on every node.
std::shared_ptr<const Placement> ReadPlacement(const Json& pod);
// Of the node alone: selector and node affinity.
bool NodeMatches(const Placement& placement, const Labels& node);

}  // namespace fairlead::sim::world
