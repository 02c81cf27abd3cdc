// Labels of namespaces. A term of pod affinity may select namespaces by them; the class of a pod
// with such a term has the names that it selects, so that nothing else reads labels of namespaces.
// Pods change their class when these names change.
#include <algorithm>
#include <utility>

#include "scheduler/model/pod_terms.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

// Selectors whose names are remembered; tenants write them.
constexpr size_t kMaxRemembered = 256;

template <typename Spec, typename F>
void ForEachTerm(Spec& spec, F use) {
  for (auto* terms : {&spec.pod_affinity, &spec.pod_anti_affinity}) {
    for (auto& term : *terms) {
      if (model::ReadsNamespaceLabels(term)) use(term);
    }
  }
}

}  // namespace

bool ClusterState::ReadsNamespaces(const model::PodSpec& spec) {
  bool reads = false;
  ForEachTerm(spec, [&](const model::PodAffinityTerm&) { reads = true; });
  return reads;
}

const model::NamespaceNames& ClusterState::NamespacesOf(
    const model::LabelSelector& selector) const {
  const auto known = selected_namespaces_.find(selector);
  if (known != selected_namespaces_.end()) return known->second;
  if (selected_namespaces_.size() >= kMaxRemembered) selected_namespaces_.clear();
  std::vector<std::string> names;  // sorted, as the map is
  for (const auto& [name, labels] : namespaces_) {
    if (selector.Matches(labels)) names.push_back(name);
  }
  return selected_namespaces_.emplace(selector, model::NamespaceNames(std::move(names)))
      .first->second;
}

void ClusterState::ResolveNamespaces(model::PodSpec& spec) const {
  ForEachTerm(spec, [&](model::PodAffinityTerm& term) {
    term.selected_namespaces.reset();
    if (namespaces_readable_) term.selected_namespaces = NamespacesOf(*term.namespace_selector);
  });
}

// O(pods).
Change ClusterState::ReclassByNamespaces() {
  selected_namespaces_.clear();
  Change change;
  for (PodRecord& record : pods_) {
    if (record.id == kNoId || record.status == PodStatus::kSucceeded) continue;
    const std::shared_ptr<const model::PodSpec> former = classes_[record.pod_class].spec;
    if (!ReadsNamespaces(*former)) continue;
    model::PodSpec spec = *former;
    ResolveNamespaces(spec);
    if (spec == *former) continue;
    ChangeClass(record, spec);
    change.capacity = change.workloads = true;
  }
  if (!new_terms_.empty()) change.workloads |= ReclassSelected();
  if (change.Any()) ++version_;
  return change;
}

bool ClusterState::SelectsOtherwise(const model::StringMap* former,
                                    const model::StringMap* labels) const {
  if (classes_reading_namespaces_ == 0) return false;
  return std::any_of(classes_.begin(), classes_.end(), [&](const PodClass& each) {
    bool differs = false;
    if (each.spec == nullptr) return false;
    ForEachTerm(*each.spec, [&](const model::PodAffinityTerm& term) {
      const auto selects = [&](const model::StringMap* of) {
        return of != nullptr && term.namespace_selector->Matches(*of);
      };
      differs = differs || selects(former) != selects(labels);
    });
    return differs;
  });
}

Change ClusterState::UpsertNamespace(const model::Namespace& ns) {
  const auto [at, added] = namespaces_.try_emplace(ns.meta.name);
  const model::StringMap former = std::exchange(at->second, ns.meta.labels);
  if (!added && former == ns.meta.labels) return {};
  selected_namespaces_.clear();
  if (!namespaces_readable_ || !SelectsOtherwise(added ? nullptr : &former, &at->second)) return {};
  return ReclassByNamespaces();
}

Change ClusterState::RemoveNamespace(absl::string_view name) {
  const auto at = namespaces_.find(std::string(name));
  if (at == namespaces_.end()) return {};
  const model::StringMap former = std::move(at->second);
  namespaces_.erase(at);
  selected_namespaces_.clear();
  if (!namespaces_readable_ || !SelectsOtherwise(&former, nullptr)) return {};
  return ReclassByNamespaces();
}

Change ClusterState::SetNamespacesReadable(bool readable) {
  if (namespaces_readable_ == readable) return {};
  namespaces_readable_ = readable;
  return ReclassByNamespaces();
}

std::string ClusterState::CheckNamespaces() const {
  size_t reading = 0;
  std::string wrong;
  for (const PodClass& each : classes_) {
    if (each.spec == nullptr || !ReadsNamespaces(*each.spec)) continue;
    ++reading;
    ForEachTerm(*each.spec, [&](const model::PodAffinityTerm& term) {
      if (term.selected_namespaces.has_value() != namespaces_readable_) wrong = "known";
      if (!term.selected_namespaces.has_value()) return;
      for (const auto& [name, labels] : namespaces_) {
        if (term.selected_namespaces->Has(name) != term.namespace_selector->Matches(labels)) {
          wrong = name;
        }
      }
    });
  }
  if (wrong.empty() && reading != classes_reading_namespaces_) wrong = "count";
  return wrong.empty() ? "" : "namespaces that terms select: " + wrong;
}

}  // namespace fairlead::state
