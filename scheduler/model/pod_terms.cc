#include "scheduler/model/pod_terms.h"

#include <algorithm>

#include "scheduler/model/api_names.h"

namespace fairlead::model {

Selection Selects(const PodAffinityTerm& term, const std::string& owner_ns, const std::string& ns,
                  const StringMap& labels) {
  if (!term.selector.Matches(labels)) return Selection::kNo;
  if (term.namespaces.empty() && !term.namespace_selector.has_value()) {
    return ns == owner_ns ? Selection::kYes : Selection::kNo;
  }
  if (std::find(term.namespaces.begin(), term.namespaces.end(), ns) != term.namespaces.end()) {
    return Selection::kYes;
  }
  if (!term.namespace_selector.has_value() || term.namespace_selector->none) return Selection::kNo;
  if (!ReadsNamespaceLabels(term)) return Selection::kYes;
  if (!term.selected_namespaces.has_value()) return Selection::kUnknown;
  return term.selected_namespaces->Has(ns) ? Selection::kYes : Selection::kNo;
}

bool NeedsNamespaceLabels(const PodAffinityTerm& term) {
  return ReadsNamespaceLabels(term) && !term.selected_namespaces.has_value();
}

bool ReadsNamespaceLabels(const PodAffinityTerm& term) {
  return term.namespace_selector.has_value() && !term.namespace_selector->none &&
         !term.namespace_selector->requirements.empty();
}

bool IsBond(const PodAffinityTerm& term, bool anti) {
  return term.weight == 0 && !(anti && term.topology_key == kHostnameLabel);
}

}  // namespace fairlead::model
