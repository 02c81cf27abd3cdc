#include "scheduler/state/default_selectors.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "scheduler/state/rows.h"

namespace fairlead::state {
namespace {

using model::Kind;
using model::LabelSelector;
using model::SelectorOperator;
using model::SelectorRequirement;
using model::StringMap;

// Calls `use` with the position of each label that the selector names, if it selects the labels.
// O(labels): both are sorted.
template <typename Use>
bool ForEachSelected(const StringMap& selector, const StringMap& labels, Use use) {
  const auto walk = [&](auto with) {
    size_t position = 0;
    auto at = labels.begin();
    for (const auto& [key, value] : selector) {
      for (; at != labels.end() && (*at).first < key; ++at) ++position;
      if (at == labels.end() || (*at).first != key || (*at).second != value) return false;
      with(position);
    }
    return true;
  };
  if (selector.size() > labels.size() || !walk([](size_t) {})) return false;
  walk(use);
  return true;
}

// What a controller's object says, in one form for all kinds: of a ReplicationController In with
// one value.
LabelSelector SelectorOfMap(const StringMap& map) {
  LabelSelector selector;
  selector.none = map.empty();
  for (const auto& [key, value] : map) {
    selector.requirements.push_back({key, SelectorOperator::kIn, {value}});
  }
  return selector;
}

bool NamesController(const model::OwnerReference& owner, Kind kind) {
  const model::KindTraits& traits = model::TraitsOf(kind);
  return owner.kind == traits.name && owner.api_version == traits.api_version;
}

}  // namespace

SpreadGroupKey SpreadGroupOf(const model::ObjectMeta& pod) {
  SpreadGroupKey key;
  key.ns = pod.ns;
  key.labels = pod.labels;
  // Of several that say so, the first is the controller.
  const auto owner = std::find_if(pod.owners.begin(), pod.owners.end(),
                                  [](const auto& each) { return each.controller; });
  if (owner == pod.owners.end()) return key;
  for (const Kind kind : {Kind::kReplicationController, Kind::kReplicaSet, Kind::kStatefulSet}) {
    if (!NamesController(*owner, kind)) continue;
    key.controller_kind = kind;
    key.controller = owner->name;
  }
  return key;
}

std::vector<PodId> DefaultSelectors::Upsert(const model::SpreadSource& object) {
  Pods touched;
  std::visit(
      [&](const auto& typed) {
        Namespace& ns = namespaces_[typed.meta.ns];
        auto selector = typed.invalid.empty() ? typed.selector : decltype(typed.selector)();
        if constexpr (requires { typed.selector.none; }) {
          constexpr Kind kKind = std::is_same_v<decltype(typed), const model::ReplicaSet&>
                                     ? Kind::kReplicaSet
                                     : Kind::kStatefulSet;
          selector.none = selector.none || selector.requirements.empty();
          SetController(ns, kKind, typed.meta.name, selector, touched);
        } else if constexpr (std::is_same_v<decltype(typed), const model::Service&>) {
          SetService(ns, typed.meta.name, selector, touched);
        } else {
          SetController(ns, Kind::kReplicationController, typed.meta.name, SelectorOfMap(selector),
                        touched);
        }
        ForgetIfEmpty(typed.meta.ns);
      },
      object);
  return {touched.begin(), touched.end()};
}

std::vector<PodId> DefaultSelectors::Remove(Kind kind, absl::string_view ns,
                                            absl::string_view name) {
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return {};
  Pods touched;
  if (kind == Kind::kService) {
    SetService(found->second, std::string(name), {}, touched);
  } else {
    SetController(found->second, kind, std::string(name), {}, touched);
  }
  ForgetIfEmpty(ns);
  return {touched.begin(), touched.end()};
}

void DefaultSelectors::SetService(Namespace& ns, const std::string& name, const StringMap& selector,
                                  Pods& touched) {
  const auto known = ns.services.find(name);
  const StringMap former = known == ns.services.end() ? StringMap() : known->second;
  if (former == selector) return;
  // First the new one, so that labels that both name are counted throughout.
  if (!selector.empty()) AddSelector(ns, selector, touched);
  if (!former.empty()) DropSelector(ns, former, touched);
  if (selector.empty()) {
    ns.services.erase(name);
  } else {
    ns.services[name] = selector;
  }
}

void DefaultSelectors::AddSelector(Namespace& ns, const StringMap& selector, Pods& touched) {
  Filed& filed = ns.selectors[selector];
  if (++filed.services > 1) return;
  size_t fewest = 0;
  for (const auto& [key, value] : selector) {
    const auto bucket = ns.by_label.find(Label(key, value));
    const size_t size = bucket == ns.by_label.end() ? 0 : bucket->second.size();
    if (filed.under.first.empty() || size < fewest) {
      fewest = size;
      filed.under = Label(key, value);
    }
  }
  ns.by_label[filed.under].push_back(selector);
  CountInGroups(ns, selector, /*add=*/true, touched);
}

void DefaultSelectors::DropSelector(Namespace& ns, const StringMap& selector, Pods& touched) {
  const auto filed = ns.selectors.find(selector);
  if (--filed->second.services > 0) return;
  const auto bucket = ns.by_label.find(filed->second.under);
  std::erase(bucket->second, selector);
  if (bucket->second.empty()) ns.by_label.erase(bucket);
  ns.selectors.erase(filed);
  CountInGroups(ns, selector, /*add=*/false, touched);
}

void DefaultSelectors::CountInGroups(const Namespace& ns, const StringMap& selector, bool add,
                                     Pods& touched) {
  for (const uint32_t id : ns.groups) {
    Group& group = groups_[id];
    bool differs = false;
    ForEachSelected(selector, group.key.labels, [&](size_t position) {
      uint32_t& count = group.counts[position];
      differs = differs || count == (add ? 0 : 1);
      count += add ? 1 : -1;
    });
    if (differs) touched.insert(group.pods.begin(), group.pods.end());
  }
}

void DefaultSelectors::SetController(Namespace& ns, Kind kind, const std::string& name,
                                     const LabelSelector& selector, Pods& touched) {
  const std::pair<Kind, std::string> key(kind, name);
  const auto known = ns.controllers.find(key);
  const LabelSelector former = known == ns.controllers.end() ? LabelSelector() : known->second;
  if (former == selector) return;
  if (selector.none) {
    ns.controllers.erase(key);
  } else {
    ns.controllers[key] = selector;
  }
  for (const uint32_t id : ns.groups) {
    const Group& group = groups_[id];
    if (group.key.controller_kind != kind || group.key.controller != name) continue;
    touched.insert(group.pods.begin(), group.pods.end());
  }
}

std::vector<uint32_t> DefaultSelectors::Count(const SpreadGroupKey& key) const {
  std::vector<uint32_t> counts(key.labels.size(), 0);
  const Namespace* const ns = Find(key.ns);
  if (ns == nullptr || ns->selectors.empty()) return counts;
  for (const auto& [name, value] : key.labels) {
    const auto bucket = ns->by_label.find(Label(name, value));
    if (bucket == ns->by_label.end()) continue;
    for (const StringMap& selector : bucket->second) {
      ForEachSelected(selector, key.labels, [&](size_t position) { ++counts[position]; });
    }
  }
  return counts;
}

LabelSelector DefaultSelectors::Compose(const SpreadGroupKey& key,
                                        const std::vector<uint32_t>& counts) const {
  absl::btree_map<std::string, std::string> labels;
  size_t position = 0;
  for (const auto& [name, value] : key.labels) {
    if (counts[position++] > 0) labels.emplace(name, value);
  }
  std::vector<SelectorRequirement> added;
  const Namespace* const ns = Find(key.ns);
  if (ns != nullptr && !key.controller.empty()) {
    const auto controller = ns->controllers.find({key.controller_kind, key.controller});
    if (controller != ns->controllers.end()) added = controller->second.requirements;
  }
  if (key.controller_kind == Kind::kReplicationController) {
    for (SelectorRequirement& each : added) labels[each.key] = std::move(each.values.front());
    added.clear();
  }
  LabelSelector selector;
  for (const auto& [name, value] : labels) {
    selector.requirements.push_back({name, SelectorOperator::kIn, {value}});
  }
  for (SelectorRequirement& each : added) {
    const auto& all = selector.requirements;
    if (std::find(all.begin(), all.end(), each) != all.end()) continue;
    selector.requirements.push_back(std::move(each));
  }
  selector.none = selector.requirements.empty();
  return selector;
}

LabelSelector DefaultSelectors::SelectorOf(const SpreadGroupKey& key) const {
  const auto known = group_index_.find(key);
  return Compose(key, known == group_index_.end() ? Count(key) : groups_[known->second].counts);
}

LabelSelector DefaultSelectors::SelectorOf(PodId pod) const {
  const Group& group = groups_[group_of_.find(pod)->second];
  return Compose(group.key, group.counts);
}

void DefaultSelectors::File(PodId pod, SpreadGroupKey key) {
  const auto filed = group_of_.find(pod);
  if (filed != group_of_.end() && groups_[filed->second].key == key) return;
  Drop(pod);
  const auto known = group_index_.find(key);
  uint32_t id = kNoId;
  if (known != group_index_.end()) {
    id = known->second;
  } else {
    id = TakeRow(groups_, free_groups_);
    Group& group = groups_[id];
    group.counts = Count(key);
    namespaces_[key.ns].groups.insert(id);
    group_index_.emplace(key, id);
    group.key = std::move(key);
  }
  groups_[id].pods.insert(pod);
  group_of_.emplace(pod, id);
}

void DefaultSelectors::Drop(PodId pod) {
  const auto filed = group_of_.find(pod);
  if (filed == group_of_.end()) return;
  const uint32_t id = filed->second;
  group_of_.erase(filed);
  Group& group = groups_[id];
  group.pods.erase(pod);
  if (!group.pods.empty()) return;
  namespaces_[group.key.ns].groups.erase(id);
  ForgetIfEmpty(group.key.ns);
  group_index_.erase(group.key);
  group = Group{};
  free_groups_.push_back(id);
}

const SpreadGroupKey* DefaultSelectors::KeyOf(PodId pod) const {
  const auto filed = group_of_.find(pod);
  return filed == group_of_.end() ? nullptr : &groups_[filed->second].key;
}

const DefaultSelectors::Namespace* DefaultSelectors::Find(absl::string_view ns) const {
  const auto found = namespaces_.find(ns);
  return found == namespaces_.end() ? nullptr : &found->second;
}

void DefaultSelectors::ForgetIfEmpty(absl::string_view ns) {
  const auto found = namespaces_.find(ns);
  if (found != namespaces_.end() && found->second.IsEmpty()) namespaces_.erase(found);
}

std::string DefaultSelectors::CheckConsistency() const {
  for (const auto& [name, ns] : namespaces_) {
    absl::flat_hash_map<StringMap, size_t> services;
    for (const auto& [service, selector] : ns.services) ++services[selector];
    size_t filed = 0;
    for (const auto& [label, bucket] : ns.by_label) filed += bucket.size();
    bool same = services.size() == ns.selectors.size() && services.size() == filed;
    for (const auto& [selector, each] : ns.selectors) {
      const auto found = services.find(selector);
      same = same && found != services.end() && found->second == each.services;
    }
    if (!same || ns.IsEmpty()) return absl::StrCat("Services of namespace ", name);
  }
  size_t pods = 0;
  for (const auto& [key, id] : group_index_) {
    const Group& group = groups_[id];
    const Namespace* const ns = Find(key.ns);
    if (!(group.key == key) || group.pods.empty() || ns == nullptr || !ns->groups.contains(id)) {
      return absl::StrCat("a group of pods of namespace ", key.ns);
    }
    pods += group.pods.size();
    std::vector<uint32_t> counts(key.labels.size(), 0);
    for (const auto& [selector, each] : ns->selectors) {
      ForEachSelected(selector, key.labels, [&](size_t position) { ++counts[position]; });
    }
    if (counts != group.counts) return absl::StrCat("labels by Services of namespace ", key.ns);
  }
  return pods == group_of_.size() ? "" : "pods with default constraints";
}

}  // namespace fairlead::state
