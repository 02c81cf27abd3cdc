// Default constraints of topology spread. A pod of ours without constraints of its own gets those
// of its profile (StateOptions::spread_defaults), if a Service or its controller says which pods
// belong together (default_selectors.h). They are part of its class, so that nothing else knows of
// these objects; the class changes when they come, change or go.
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

const SpreadDefaults* ClusterState::SpreadDefaultsOf(uint16_t profile) const {
  if (profile >= options_.spread_defaults.size()) return nullptr;
  const SpreadDefaults& defaults = options_.spread_defaults[profile];
  return defaults.constraints.empty() ? nullptr : &defaults;
}

void ClusterState::SetDefaultSpread(const model::LabelSelector& selector,
                                    const model::StringMap& labels, model::PodSpec& spec) const {
  spec.topology_spread.clear();
  spec.spread_origin = model::SpreadOrigin::kOwn;
  const bool has_all_labels = spec.HasAllLabels();
  if (!has_all_labels) spec.labels_for_affinity = {};
  const SpreadDefaults* const defaults = SpreadDefaultsOf(spec.profile);
  if (selector.none || defaults == nullptr) return;
  spec.spread_origin = defaults->origin;
  spec.topology_spread = defaults->constraints;
  for (model::TopologySpreadConstraint& each : spec.topology_spread) each.selector = selector;
  if (!has_all_labels) AddLabelsForDefaults(labels, spec);
}

void ClusterState::AddLabelsForDefaults(const model::StringMap& labels, model::PodSpec& spec) {
  if (spec.spread_origin == model::SpreadOrigin::kOwn) return;
  for (const auto& requirement : spec.topology_spread.front().selector.requirements) {
    const std::string* const value = labels.Find(requirement.key);
    if (value != nullptr) spec.labels_for_affinity.Set(requirement.key, *value);
  }
}

bool ClusterState::TakesDefaultSpread(const model::Pod& pod, const model::PodSpec& spec) const {
  return pod.spec.topology_spread.empty() && SpreadDefaultsOf(spec.profile) != nullptr;
}

void ClusterState::FileForDefaults(const PodRecord& record, const model::Pod& pod) {
  if (options_.spread_defaults.empty()) return;
  if (!record.ours || !TakesDefaultSpread(pod, *classes_[record.pod_class].spec)) {
    return default_selectors_.Drop(record.id);
  }
  SpreadGroupKey key = SpreadGroupOf(pod.meta);
  key.labels = record.labels;  // shares their memory
  default_selectors_.File(record.id, std::move(key));
}

// O(pods).
Change ClusterState::ReclassDefaults(const std::vector<PodId>& pods) {
  Change change;
  for (const PodId id : pods) {
    PodRecord& record = pods_[id];
    const std::shared_ptr<const model::PodSpec> former = classes_[record.pod_class].spec;
    model::PodSpec spec = *former;
    spec.selected_by_others = false;
    SetDefaultSpread(default_selectors_.SelectorOf(id), record.labels, spec);
    std::optional<model::PodSpec> selected = SelectedSpec(spec, record.labels);
    if (selected.has_value()) spec = *std::move(selected);
    if (spec == *former) continue;
    ChangeClass(record, spec);
    change.capacity = change.workloads = true;
  }
  if (change.Any()) ++version_;
  return change;
}

Change ClusterState::UpsertSpreadSource(const model::SpreadSource& object) {
  if (options_.spread_defaults.empty()) return {};
  return ReclassDefaults(default_selectors_.Upsert(object));
}

Change ClusterState::RemoveSpreadSource(model::Kind kind, absl::string_view ns,
                                        absl::string_view name) {
  if (options_.spread_defaults.empty()) return {};
  return ReclassDefaults(default_selectors_.Remove(kind, ns, name));
}

std::string ClusterState::CheckDefaultSpread() const {
  size_t filed = 0;
  for (const PodRecord& record : pods_) {
    if (record.id == kNoId || !record.ours || record.status == PodStatus::kSucceeded) continue;
    const model::PodSpec& spec = *classes_[record.pod_class].spec;
    const bool own = spec.spread_origin == model::SpreadOrigin::kOwn;
    const SpreadGroupKey* const key = default_selectors_.KeyOf(record.id);
    const std::string wrong = absl::StrCat("default spread of pod ", record.name);
    if (key == nullptr) {
      // Nothing to be filed for, or constraints of its own.
      if (!own || (SpreadDefaultsOf(spec.profile) != nullptr && spec.topology_spread.empty())) {
        return wrong;
      }
      continue;
    }
    ++filed;
    if (key->ns != record.ns || !(key->labels == record.labels)) return wrong;
    model::PodSpec expected = spec;
    SetDefaultSpread(default_selectors_.SelectorOf(record.id), record.labels, expected);
    if (!(expected.topology_spread == spec.topology_spread) ||
        expected.spread_origin != spec.spread_origin) {
      return wrong;
    }
    for (const auto& [name, value] : expected.labels_for_affinity) {
      const std::string* const has = spec.labels_for_affinity.Find(name);
      if (has == nullptr || *has != value) return wrong;
    }
  }
  if (filed != default_selectors_.pod_count()) return "pods that are filed for default spread";
  return default_selectors_.CheckConsistency();
}

}  // namespace fairlead::state
