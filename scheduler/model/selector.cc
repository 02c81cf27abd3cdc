#include "scheduler/model/selector.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace fairlead::model {

absl::string_view OperatorName(SelectorOperator op) {
  switch (op) {
    case SelectorOperator::kIn:
      return "In";
    case SelectorOperator::kNotIn:
      return "NotIn";
    case SelectorOperator::kExists:
      return "Exists";
    case SelectorOperator::kDoesNotExist:
      return "DoesNotExist";
    case SelectorOperator::kGt:
      return "Gt";
    case SelectorOperator::kLt:
      return "Lt";
  }
  return "";
}

bool MatchesValue(const SelectorRequirement& requirement, const std::string* value) {
  const auto& values = requirement.values;
  switch (requirement.op) {
    case SelectorOperator::kIn:
      return value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
    case SelectorOperator::kNotIn:
      return value == nullptr || std::find(values.begin(), values.end(), *value) == values.end();
    case SelectorOperator::kExists:
      return value != nullptr;
    case SelectorOperator::kDoesNotExist:
      return value == nullptr;
    case SelectorOperator::kGt:
    case SelectorOperator::kLt: {
      int64_t have = 0;
      int64_t bound = 0;
      if (value == nullptr || values.size() != 1 || !absl::SimpleAtoi(*value, &have) ||
          !absl::SimpleAtoi(values[0], &bound)) {
        return false;
      }
      return requirement.op == SelectorOperator::kGt ? have > bound : have < bound;
    }
  }
  return false;
}

bool Matches(const SelectorRequirement& requirement, const StringMap& labels) {
  return MatchesValue(requirement, labels.Find(requirement.key));
}

bool LabelSelector::Matches(const StringMap& labels) const {
  if (none) return false;
  return std::all_of(requirements.begin(), requirements.end(), [&](const SelectorRequirement& r) {
    return ::fairlead::model::Matches(r, labels);
  });
}

bool NodeSelectorTerm::Matches(const StringMap& labels, const std::string& node_name) const {
  if (match_expressions.empty() && match_fields.empty()) return false;
  for (const SelectorRequirement& r : match_expressions) {
    if (!::fairlead::model::Matches(r, labels)) return false;
  }
  for (const SelectorRequirement& r : match_fields) {
    if (!MatchesValue(r, r.key == "metadata.name" ? &node_name : nullptr)) return false;
  }
  return true;
}

bool NodeSelectorTerm::MatchesLabels(const StringMap& labels) const {
  if (match_expressions.empty() && match_fields.empty()) return false;
  return std::all_of(
      match_expressions.begin(), match_expressions.end(),
      [&](const SelectorRequirement& r) { return ::fairlead::model::Matches(r, labels); });
}

}  // namespace fairlead::model
