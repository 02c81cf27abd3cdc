// Label selectors and node selector terms: values and their matching.
// Source: k8s.io/apimachinery/pkg/labels, k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
// Thread-safety: plain values, pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::model {

enum class SelectorOperator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
// As the API writes it.
absl::string_view OperatorName(SelectorOperator op);

struct SelectorRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;
  friend bool operator==(const SelectorRequirement&, const SelectorRequirement&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SelectorRequirement& r) {
    return H::combine(std::move(h), r.key, r.op, r.values);
  }
};

// A key that is absent matches NotIn and DoesNotExist, nothing else. Gt and Lt compare integers.
bool Matches(const SelectorRequirement& requirement, const StringMap& labels);
// As Matches, on one value that may be absent (matchFields on metadata.name).
bool MatchesValue(const SelectorRequirement& requirement, const std::string* value);

// metav1.LabelSelector: every requirement must hold. An empty selector matches everything; `none`
// (a nil selector in Go) matches nothing.
struct LabelSelector {
  bool none = true;
  std::vector<SelectorRequirement> requirements;  // matchLabels become In with one value
  [[nodiscard]] bool Matches(const StringMap& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const LabelSelector& s) {
    return H::combine(std::move(h), s.none, s.requirements);
  }
};

// One term of a node affinity: all its expressions over labels and fields must hold. A term without
// expressions matches no node.
struct NodeSelectorTerm {
  std::vector<SelectorRequirement> match_expressions;
  std::vector<SelectorRequirement> match_fields;  // metadata.name only
  [[nodiscard]] bool Matches(const StringMap& labels, const std::string& node_name) const;
  // As kube-scheduler reads the node affinity of a volume: match_fields exclude no node.
  [[nodiscard]] bool MatchesLabels(const StringMap& labels) const;
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const NodeSelectorTerm& t) {
    return H::combine(std::move(h), t.match_expressions, t.match_fields);
  }
};

}  // namespace fairlead::model
