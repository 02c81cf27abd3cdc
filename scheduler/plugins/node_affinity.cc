#include "scheduler/plugins/node_affinity.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/normalize.h"

namespace fairlead::plugins {

namespace {

bool MatchesAny(const std::vector<model::NodeSelectorTerm>& terms, const model::Node& node) {
  return std::any_of(terms.begin(), terms.end(), [&](const model::NodeSelectorTerm& term) {
    return term.Matches(node.meta.labels, node.meta.name);
  });
}

}  // namespace

bool MatchesNodeAffinity(const model::PodSpec& spec, const model::Node& node) {
  for (const auto& [key, value] : spec.node_selector) {
    const std::string* label = node.meta.labels.Find(key);
    if (label == nullptr || *label != value) return false;
  }
  if (!spec.has_required_node_affinity) return true;
  return MatchesAny(spec.required_node_terms, node);
}

namespace {

// The nodes that all requirements of the term by name have in common; none if it has no such.
std::optional<std::vector<std::string>> NamesOf(const model::NodeSelectorTerm& term) {
  std::optional<std::vector<std::string>> names;
  for (const model::SelectorRequirement& field : term.match_fields) {
    if (field.op != model::SelectorOperator::kIn) continue;
    if (!names.has_value()) {
      names = field.values;
      continue;
    }
    std::erase_if(*names, [&](const std::string& name) {
      return std::find(field.values.begin(), field.values.end(), name) == field.values.end();
    });
  }
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeAffinity::Make(absl::string_view args_json) {
  FAIRLEAD_ASSIGN_OR_RETURN(AddedAffinity added, ReadAddedAffinity(kName, args_json));
  return std::make_unique<NodeAffinity>(std::move(added));
}

std::string NodeAffinity::LeavesOutAll(const state::PodClass& pod_class) const {
  const std::vector<model::NodeSelectorTerm>& terms = pod_class.spec->required_node_terms;
  const bool none = std::all_of(terms.begin(), terms.end(), [](const auto& term) {
    const std::optional<std::vector<std::string>> names = NamesOf(term);
    return names.has_value() && names->empty();
  });
  return none && !terms.empty() ? "pod affinity terms conflict" : "";
}

std::string NodeAffinity::LeavesOut(const state::PodClass& pod_class,
                                    const state::NodeInfo& node) const {
  const std::vector<model::NodeSelectorTerm>& terms = pod_class.spec->required_node_terms;
  for (const model::NodeSelectorTerm& term : terms) {
    const std::optional<std::vector<std::string>> names = NamesOf(term);
    if (!names.has_value()) return "";
    if (std::find(names->begin(), names->end(), node.object.meta.name) != names->end()) return "";
  }
  return terms.empty() ? "" : "node(s) didn't satisfy plugin(s) [NodeAffinity]";
}

bool NodeAffinity::Filter(const framework::Context& context, const state::NodeInfo& node,
                          framework::Status* why) const {
  if (added_.has_required && !MatchesAny(added_.required, node.object)) {
    return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                  "node(s) didn't match scheduler-enforced node affinity");
  }
  if (MatchesNodeAffinity(*context.pod_class.spec, node.object)) return true;
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "node(s) didn't match Pod's node affinity/selector");
}

int64_t NodeAffinity::WeightOn(const model::PodSpec& spec, const state::NodeInfo& node) const {
  int64_t weight = 0;
  for (const auto* terms : {&spec.preferred_node_terms, &added_.preferred}) {
    for (const model::PreferredNodeTerm& preferred : *terms) {
      if (preferred.weight <= 0) continue;
      if (!preferred.term.Matches(node.object.meta.labels, node.object.meta.name)) continue;
      weight = model::SaturatingAdd(weight, preferred.weight);
    }
  }
  return weight;
}

void NodeAffinity::AddMarks(const framework::Context& context, const state::NodeInfo& node,
                            const framework::TopologyKeys&, framework::Marks& marks) const {
  marks.push_back(WeightOn(*context.pod_class.spec, node));
}

void NodeAffinity::ScoreKinds(const framework::Context& context,
                              absl::Span<const framework::Kind> kinds,
                              absl::Span<int64_t> scores) const {
  for (size_t i = 0; i < kinds.size(); ++i) {
    scores[i] = WeightOn(*context.pod_class.spec, *kinds[i].node);
  }
  NormalizeByMost(kinds, scores);
}

}  // namespace fairlead::plugins
