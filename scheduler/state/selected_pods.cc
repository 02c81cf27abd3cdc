// Pods that other pods keep away from themselves. Required anti-affinity holds in both directions:
// a pod without any term of its own may not go to a domain with a pod that has a term that selects
// it. Whether a class is selected therefore depends on the whole cluster: a selected pod's class
// has the labels that such terms read (no others, so that classes stay few), and the mark.
#include <algorithm>

#include "scheduler/model/pod_terms.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

// Has it terms that read labels of pods, its own among them?
bool HasTerms(const model::PodSpec& spec) {
  return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
         !spec.topology_spread.empty();
}

}  // namespace

void ClusterState::AddTerms(const model::PodSpec& spec) {
  if (HasTerms(spec)) ++classes_with_terms_;
  if (ReadsNamespaces(spec)) ++classes_reading_namespaces_;
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (term.weight != 0) continue;
    if (++anti_affinity_[{spec.ns, term}] > 1) continue;
    anti_affinity_grew_ = true;
    for (const model::SelectorRequirement& requirement : term.selector.requirements) {
      auto it = std::lower_bound(selected_keys_.begin(), selected_keys_.end(), requirement.key);
      if (it == selected_keys_.end() || *it != requirement.key) {
        selected_keys_.insert(it, requirement.key);
      }
    }
  }
}

// Keys that no term reads any more go with the last term: more of them than needed do no harm.
void ClusterState::DropTerms(const model::PodSpec& spec) {
  if (HasTerms(spec)) --classes_with_terms_;
  if (ReadsNamespaces(spec)) --classes_reading_namespaces_;
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (term.weight != 0) continue;
    auto it = anti_affinity_.find({spec.ns, term});
    if (--it->second == 0) anti_affinity_.erase(it);
  }
  if (anti_affinity_.empty()) selected_keys_.clear();
}

bool ClusterState::IsSelected(const std::string& ns, const model::StringMap& labels) const {
  return std::any_of(anti_affinity_.begin(), anti_affinity_.end(), [&](const auto& entry) {
    return model::Selects(entry.first.second, entry.first.first, ns, labels) !=
           model::Selection::kNo;
  });
}

std::optional<model::PodSpec> ClusterState::SelectedSpec(const model::PodSpec& spec,
                                                         const model::StringMap& labels) const {
  // A class with terms of its own and labels has the labels already. One without labels needs the
  // mark: a term may select what lacks a label.
  if (anti_affinity_.empty() || (HasTerms(spec) && !spec.labels_for_affinity.empty()) ||
      !IsSelected(spec.ns, labels)) {
    return std::nullopt;
  }
  model::PodSpec selected = spec;
  selected.selected_by_others = true;
  selected.labels_for_affinity = {};
  for (const std::string& key : selected_keys_) {
    if (const std::string* value = labels.Find(key)) selected.labels_for_affinity.Set(key, *value);
  }
  return selected;
}

// After a new term: O(pods).
bool ClusterState::ReclassSelected() {
  anti_affinity_grew_ = false;
  bool any = false;
  for (PodRecord& record : pods_) {
    if (record.id == kNoId || !record.ours || record.status == PodStatus::kSucceeded) continue;
    const std::shared_ptr<const model::PodSpec> former = classes_[record.pod_class].spec;
    const std::optional<model::PodSpec> selected = SelectedSpec(*former, record.labels);
    if (!selected.has_value() || *selected == *former) continue;
    const GpuPick groups = record.gpu_groups;
    ChangeClass(record, *selected, &groups);
    any = true;
  }
  return any;
}

}  // namespace fairlead::state
