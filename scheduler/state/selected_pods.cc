// Pods that the terms of other pods select. Affinity holds in both directions: a pod without any
// term of its own may not go to a domain with a pod whose required anti-affinity selects it, and
// likes domains more or less by the other terms of the pods there. Whether a class is selected
// therefore depends on the whole cluster: a selected pod's class has the labels that such terms
// read (no others, so that classes stay few), and the mark. A class with default constraints has
// these labels, too, and the mark only if it is selected.
#include <algorithm>
#include <utility>

#include "scheduler/model/pod_terms.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

// Has it terms that read labels of pods, its own among them?
bool HasTerms(const model::PodSpec& spec) {
  return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
         !spec.topology_spread.empty();
}

const model::PodAffinityTerm& TermOf(const model::PodAffinityTerm& term) { return term; }
// It selects the pods that the constraint counts.
model::PodAffinityTerm TermOf(const model::TopologySpreadConstraint& spread) {
  model::PodAffinityTerm term;
  term.topology_key = spread.topology_key;
  term.selector = spread.selector;
  return term;
}

}  // namespace

void ClusterState::AddTerms(const model::PodSpec& spec) {
  if (HasTerms(spec)) ++classes_with_terms_;
  if (ReadsNamespaces(spec)) ++classes_reading_namespaces_;
  model::ForEachBond(spec, [&](const auto& bond) { bonds_.Add(spec.ns, TermOf(bond)); });
  for (const auto* terms : {&spec.pod_affinity, &spec.pod_anti_affinity}) {
    for (const model::PodAffinityTerm& term : *terms) {
      if (!terms_.Add(spec.ns, term)) continue;
      new_terms_.emplace_back(spec.ns, term);
      for (const model::SelectorRequirement& requirement : term.selector.requirements) {
        auto it = std::lower_bound(selected_keys_.begin(), selected_keys_.end(), requirement.key);
        if (it == selected_keys_.end() || *it != requirement.key) {
          selected_keys_.insert(it, requirement.key);
          new_keys_ = true;
        }
      }
    }
  }
}

// Keys that no term reads any more go with the last term: more of them than needed do no harm.
void ClusterState::DropTerms(const model::PodSpec& spec) {
  if (HasTerms(spec)) --classes_with_terms_;
  if (ReadsNamespaces(spec)) --classes_reading_namespaces_;
  model::ForEachBond(spec, [&](const auto& bond) { bonds_.Remove(spec.ns, TermOf(bond)); });
  for (const auto* terms : {&spec.pod_affinity, &spec.pod_anti_affinity}) {
    for (const model::PodAffinityTerm& term : *terms) terms_.Remove(spec.ns, term);
  }
  if (terms_.IsEmpty()) selected_keys_.clear();
}

std::optional<model::PodSpec> ClusterState::SelectedSpec(const model::PodSpec& spec,
                                                         const model::StringMap& labels) const {
  // A class with terms of its own and labels has the labels already. One without labels needs the
  // mark: a term may select what lacks a label. One with labels for default constraints needs the
  // others, too: without them a term would seem to select it.
  if (terms_.IsEmpty() || (spec.HasAllLabels() && !spec.labels_for_affinity.empty())) {
    return std::nullopt;
  }
  const bool is_selected = terms_.Select(spec.ns, labels);
  if (!is_selected && spec.spread_origin == model::SpreadOrigin::kOwn) return std::nullopt;
  model::PodSpec selected = spec;
  selected.selected_by_others = is_selected;
  selected.labels_for_affinity = {};
  AddLabelsForDefaults(labels, selected);
  for (const std::string& key : selected_keys_) {
    if (const std::string* value = labels.Find(key)) selected.labels_for_affinity.Set(key, *value);
  }
  return selected;
}

// After new terms: O(pods * new terms).
bool ClusterState::ReclassSelected() {
  const std::vector<std::pair<std::string, model::PodAffinityTerm>> added = std::move(new_terms_);
  new_terms_.clear();
  const bool new_keys = std::exchange(new_keys_, false);
  bool any = false;
  for (PodRecord& record : pods_) {
    if (record.id == kNoId || !record.ours || record.status == PodStatus::kSucceeded) continue;
    const bool concerns = std::any_of(added.begin(), added.end(), [&record](const auto& term) {
      return model::Selects(term.second, term.first, record.ns, record.labels) !=
             model::Selection::kNo;
    });
    const std::shared_ptr<const model::PodSpec> former = classes_[record.pod_class].spec;
    // A class without the label of a new key looks as if its pods had none.
    const bool has_some_labels =
        former->selected_by_others || former->spread_origin != model::SpreadOrigin::kOwn;
    if (!concerns && !(new_keys && has_some_labels)) continue;
    const std::optional<model::PodSpec> selected = SelectedSpec(*former, record.labels);
    if (!selected.has_value() || *selected == *former) continue;
    ChangeClass(record, *selected);
    any = true;
  }
  return any;
}

}  // namespace fairlead::state
