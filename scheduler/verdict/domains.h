// Which pods of a workload have to share a domain of a topology. The engine makes this value and
// the scale hook plans by it. Users see only `what`.
//
// Thread-safety: plain values, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// The topology constraint of a workload, or of one of its sub-groups.
struct DomainRule {
  int32_t around = -1;  // the rule of the set around it, by index; -1: none
  std::string what;     // for people: "topology cluster, required level zone"
  // Node labels of all levels, outermost first: a node that lacks one of them is no candidate.
  std::vector<std::string> labels;
  // The number of leading labels on which its nodes have equal values; 0: none.
  int64_t required = 0;
  // Labels that have equal values if this costs nothing more; more than `required`, or 0.
  int64_t preferred = 0;
  // Values of the first `required` labels where its pods run already: the nodes match one entry.
  // Empty: any.
  std::vector<std::vector<std::string>> pinned;
  friend bool operator==(const DomainRule&, const DomainRule&) = default;
};

// Pods that lack a place, by the innermost rule that they are under (-1: under none).
struct DomainPart {
  int32_t rule = -1;
  std::vector<DemandClass> classes;
  friend bool operator==(const DomainPart&, const DomainPart&) = default;
};

// All pods but these find room on the nodes that there are, in one domain.
struct DomainRoom {
  std::vector<std::string> values;  // of the first `required` labels of the only rule
  std::vector<DemandClass> rest;
  friend bool operator==(const DomainRoom&, const DomainRoom&) = default;
};

// Without rules, the classes of the verdict are the whole demand.
struct DomainDemand {
  std::vector<DomainRule> rules;   // a surrounding rule comes before the rules in it
  std::vector<DomainPart> parts;   // ascending by rule
  std::optional<DomainRoom> room;  // only with one rule, which all pods are under
  [[nodiscard]] bool empty() const { return rules.empty(); }
  friend bool operator==(const DomainDemand&, const DomainDemand&) = default;
};

// A label that no two nodes share: a level of it makes every node a domain of its own.
inline bool NamesOneNode(absl::string_view label) {
  return label == model::kHostnameLabel || label == model::kNodeRequestLabel;
}

}  // namespace fairlead::verdict
