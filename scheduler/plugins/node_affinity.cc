#include "scheduler/plugins/node_affinity.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {

bool MatchesNodeAffinity(const model::PodSpec& spec, const model::Node& node) {
  for (const auto& [key, value] : spec.node_selector) {
    const std::string* label = node.meta.labels.Find(key);
    if (label == nullptr || *label != value) return false;
  }
  if (!spec.has_required_node_affinity) return true;
  return std::any_of(spec.required_node_terms.begin(), spec.required_node_terms.end(),
                     [&](const model::NodeSelectorTerm& term) {
                       return term.Matches(node.meta.labels, node.meta.name);
                     });
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
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodeAffinity>();
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
  if (MatchesNodeAffinity(*context.pod_class.spec, node.object)) return true;
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "node(s) didn't match Pod's node affinity/selector");
}

int64_t NodeAffinity::Score(const framework::Context& context, const state::NodeInfo& node) const {
  int64_t matched = 0;
  int64_t all = 0;
  for (const model::PreferredNodeTerm& preferred : context.pod_class.spec->preferred_node_terms) {
    if (preferred.weight <= 0) continue;
    all += preferred.weight;
    if (preferred.term.Matches(node.object.meta.labels, node.object.meta.name)) {
      matched += preferred.weight;
    }
  }
  return all == 0 ? 0 : matched * 100 / all * kPreferenceStep;
}

}  // namespace fairlead::plugins
