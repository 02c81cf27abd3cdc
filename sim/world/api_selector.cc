#include "sim/world/api_selector.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

bool IsSupported(const ResourceRow& row, absl::string_view field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return row.namespaced;
  if (row.type == ResourceType::kNodes) return field == "spec.unschedulable";
  if (row.type != ResourceType::kPods) return false;
  return field == "spec.nodeName" || field == "spec.schedulerName" ||
         field == "spec.restartPolicy" || field == "status.phase" ||
         field == "status.nominatedNodeName";
}

}  // namespace

ApiError FieldSelector::Parse(const ResourceRow& row, const std::string& text, FieldSelector& out) {
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const size_t equals = part.find('=');
    if (equals == absl::string_view::npos) {
      return BadRequestError(
          absl::StrCat("invalid selector: '", text, "'; can't understand '", part, "'"));
    }
    Term term;
    absl::string_view field = part.substr(0, equals);
    absl::string_view value = part.substr(equals + 1);
    if (!field.empty() && field.back() == '!') {
      term.equal = false;
      field.remove_suffix(1);
    } else if (!value.empty() && value.front() == '=') {
      value.remove_prefix(1);
    }
    if (!IsSupported(row, field)) {
      return BadRequestError(absl::StrCat("Unable to find \"", QualifiedResource(row),
                                          "\" that match label selector \"\", field selector \"",
                                          text, "\": field label not supported: ", field));
    }
    const size_t dot = field.find('.');
    term.section = std::string(field.substr(0, dot));
    term.field = std::string(field.substr(dot + 1));
    term.value = std::string(value);
    out.terms_.push_back(std::move(term));
  }
  return {};
}

bool FieldSelector::Matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    const Json* const value = At(object, {term.section.c_str(), term.field.c_str()});
    std::string text;
    if (value != nullptr && value->is_string()) {
      text = value->get_ref<const std::string&>();
    } else if (term.field == "unschedulable") {
      text = value != nullptr && value->is_boolean() && value->get<bool>() ? "true" : "false";
    }
    return (text == term.value) == term.equal;
  });
}

}  // namespace fairlead::sim::world
