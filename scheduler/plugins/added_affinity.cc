#include "scheduler/plugins/added_affinity.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {
namespace {

using model::NodeSelectorTerm;
using model::SelectorOperator;
using model::SelectorRequirement;

absl::StatusOr<SelectorOperator> OperatorOf(absl::string_view path, const std::string& text) {
  static const auto& kOperators = *new std::map<std::string, SelectorOperator>{
      {"In", SelectorOperator::kIn},         {"NotIn", SelectorOperator::kNotIn},
      {"Exists", SelectorOperator::kExists}, {"DoesNotExist", SelectorOperator::kDoesNotExist},
      {"Gt", SelectorOperator::kGt},         {"Lt", SelectorOperator::kLt}};
  const auto found = kOperators.find(text);
  if (found == kOperators.end()) {
    return BadArg(path, absl::StrCat("\"", text,
                                     "\" is not an operator: In, NotIn, Exists, "
                                     "DoesNotExist, Gt, Lt"));
  }
  return found->second;
}

absl::Status CheckValues(absl::string_view path, const SelectorRequirement& requirement) {
  const std::string at = absl::StrCat(path, ".values");
  const size_t count = requirement.values.size();
  switch (requirement.op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      return count > 0 ? absl::OkStatus() : BadArg(at, "must be given for In and NotIn");
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      return count == 0 ? absl::OkStatus()
                        : BadArg(at, "may not be given for Exists and DoesNotExist");
    case SelectorOperator::kGt:
    case SelectorOperator::kLt:
      break;
  }
  int64_t number = 0;
  if (count == 1 && absl::SimpleAtoi(requirement.values[0], &number)) return absl::OkStatus();
  return BadArg(at, "must be one whole number for Gt and Lt");
}

absl::Status ReadRequirement(absl::string_view path, const JsonElement& value, bool of_field,
                             std::vector<SelectorRequirement>& into) {
  SelectorRequirement requirement;
  std::string op;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadFields(path, value,
                 {{"key", &requirement.key}, {"operator", &op}, {"values", &requirement.values}}));
  if (requirement.key.empty()) return BadArg(absl::StrCat(path, ".key"), "must not be empty");
  if (of_field && requirement.key != "metadata.name") {
    return BadArg(absl::StrCat(path, ".key"), "must be metadata.name");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(requirement.op, OperatorOf(absl::StrCat(path, ".operator"), op));
  FAIRLEAD_RETURN_IF_ERROR(CheckValues(path, requirement));
  if (of_field && (requirement.values.size() != 1 || (op != "In" && op != "NotIn"))) {
    return BadArg(path, "must be In or NotIn with one value");
  }
  into.push_back(std::move(requirement));
  return absl::OkStatus();
}

absl::Status ReadTerm(absl::string_view path, const JsonElement& value, NodeSelectorTerm& term) {
  const auto into = [](std::vector<SelectorRequirement>& list, bool of_field) -> ArgReader {
    return [&list, of_field](absl::string_view at, const JsonElement& items) {
      return ReadItems(at, items, [&](absl::string_view item_at, const JsonElement& item) {
        return ReadRequirement(item_at, item, of_field, list);
      });
    };
  };
  return ReadFields(path, value,
                    {{"matchExpressions", into(term.match_expressions, false)},
                     {"matchFields", into(term.match_fields, true)}});
}

absl::Status ReadRequired(absl::string_view path, const JsonElement& value,
                          AddedAffinity& affinity) {
  affinity.has_required = true;
  FAIRLEAD_RETURN_IF_ERROR(ReadFields(
      path, value, {{"nodeSelectorTerms", [&](absl::string_view at, const JsonElement& items) {
                       return ReadItems(
                           at, items, [&](absl::string_view item_at, const JsonElement& item) {
                             return ReadTerm(item_at, item, affinity.required.emplace_back());
                           });
                     }}}));
  if (!affinity.required.empty()) return absl::OkStatus();
  return BadArg(absl::StrCat(path, ".nodeSelectorTerms"), "must have a term");
}

absl::Status ReadPreferred(absl::string_view path, const JsonElement& value,
                           AddedAffinity& affinity) {
  return ReadItems(path, value, [&](absl::string_view at, const JsonElement& item) {
    model::PreferredNodeTerm preferred;
    int64_t weight = 0;
    FAIRLEAD_RETURN_IF_ERROR(
        ReadFields(at, item,
                   {{"weight", &weight, 1, 100},
                    {"preference", [&](absl::string_view term_at, const JsonElement& term) {
                       return ReadTerm(term_at, term, preferred.term);
                     }}}));
    if (weight == 0) return BadArg(absl::StrCat(at, ".weight"), "must be given");
    preferred.weight = static_cast<int32_t>(weight);
    affinity.preferred.push_back(std::move(preferred));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<AddedAffinity> ReadAddedAffinity(absl::string_view plugin,
                                                absl::string_view args_json) {
  AddedAffinity affinity;
  const auto read = [&](absl::string_view path, const JsonElement& value) {
    return ReadFields(path, value,
                      {{"requiredDuringSchedulingIgnoredDuringExecution",
                        [&](absl::string_view at, const JsonElement& v) {
                          return ReadRequired(at, v, affinity);
                        }},
                       {"preferredDuringSchedulingIgnoredDuringExecution",
                        [&](absl::string_view at, const JsonElement& v) {
                          return ReadPreferred(at, v, affinity);
                        }}});
  };
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(plugin, args_json, {{"addedAffinity", ArgReader(read)}}));
  return affinity;
}

}  // namespace fairlead::plugins
