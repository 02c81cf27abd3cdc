// For tests: pods and objects from YAML, and groupings as JSON to compare.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "grouping/grouping.h"

namespace fairlead::grouping::testing {

class FakeObjects : public Objects {
 public:
  void Add(Json object) {
    const std::string key = KeyOf(object.TextAt({"apiVersion"}), object.TextAt({"kind"}),
                                  object.TextAt({"metadata", "name"}));
    objects_.insert_or_assign(key, std::move(object));
  }
  // What is found under the name of `original`.
  void Replace(const Json& original, Json object) {
    objects_.insert_or_assign(KeyOf(original.TextAt({"apiVersion"}), original.TextAt({"kind"}),
                                    original.TextAt({"metadata", "name"})),
                              std::move(object));
  }
  void Fail(const ObjectName& name, absl::Status status) {
    failures_[KeyOf(name.api_version, name.kind, name.name)] = std::move(status);
  }
  void AddPriorityClass(const std::string& name) { classes_.insert(name); }

  [[nodiscard]] absl::StatusOr<const Json*> Find(const ObjectName& name) const override {
    const std::string key = KeyOf(name.api_version, name.kind, name.name);
    if (const auto failed = failures_.find(key); failed != failures_.end()) return failed->second;
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool HasPriorityClass(absl::string_view name) const override {
    return classes_.contains(std::string(name));
  }

 private:
  static std::string KeyOf(absl::string_view version, absl::string_view kind,
                           absl::string_view name) {
    return absl::StrCat(version, " ", kind, " ", name);
  }
  std::map<std::string, Json> objects_;
  std::map<std::string, absl::Status> failures_;
  std::set<std::string> classes_;
};

inline model::Pod PodOf(const Json& manifest) {
  model::Pod pod;
  const auto read = [&](const char* map, model::StringMap& out) {
    const Json* values = manifest.At({"metadata", map});
    if (values == nullptr) return;
    for (const auto& [key, value] : values->fields()) out.Set(key, value.text());
  };
  pod.meta.ns = manifest.TextAt({"metadata", "namespace"});
  if (pod.meta.ns.empty()) pod.meta.ns = "team";
  pod.meta.name = manifest.TextAt({"metadata", "name"});
  pod.meta.uid = manifest.TextAt({"metadata", "uid"});
  if (pod.meta.uid.empty()) pod.meta.uid = absl::StrCat("uid-", pod.meta.name);
  read("labels", pod.meta.labels);
  read("annotations", pod.meta.annotations);
  pod.priority_class_name = manifest.TextAt({"spec", "priorityClassName"});
  const Json* owners = manifest.At({"metadata", "ownerReferences"});
  if (owners == nullptr) return pod;
  for (const Json& owner : owners->items()) {
    pod.meta.owners.push_back({owner.TextAt({"apiVersion"}), owner.TextAt({"kind"}),
                               owner.TextAt({"name"}), owner.TextAt({"uid"}),
                               owner.TextAt({"controller"}) == "true"});
  }
  return pod;
}

inline Json TopologyJson(const model::TopologyConstraint& topology) {
  Json out = Json::Object();
  out.SetUnlessEmpty("topology", topology.topology);
  out.SetUnlessEmpty("required", topology.required_level);
  out.SetUnlessEmpty("preferred", topology.preferred_level);
  return out;
}

inline void SetTopology(const model::TopologyConstraint& topology, Json& out) {
  if (topology != model::TopologyConstraint()) out.Set("topology", TopologyJson(topology));
}

inline Json SubGroupJson(const model::SubGroup& sub_group) {
  Json out = Json::Object();
  out.Set("name", sub_group.name);
  out.SetUnlessEmpty("parent", sub_group.parent);
  if (sub_group.min_member.has_value()) out.Set("minMember", Json::Int(*sub_group.min_member));
  if (sub_group.min_sub_group.has_value()) {
    out.Set("minSubGroup", Json::Int(*sub_group.min_sub_group));
  }
  SetTopology(sub_group.topology, out);
  return out;
}

inline Json TermsJson(const Grouping& grouping) {
  const model::PodGroup& group = grouping.group;
  Json out = Json::Object();
  out.SetUnlessEmpty("queue", group.queue);
  out.SetUnlessEmpty("priorityClass", group.priority_class_name);
  if (group.preemptibility != model::Preemptibility::kByPriority) {
    out.Set("preemptible", Json::Bool(group.preemptibility == model::Preemptibility::kPreemptible));
  }
  if (group.preemption_delay.has_value()) {
    out.Set("preemptionDelay", absl::FormatDuration(*group.preemption_delay));
  }
  if (group.staleness_grace_period.has_value()) {
    out.Set("stalenessGracePeriod", absl::FormatDuration(*group.staleness_grace_period));
  }
  if (!grouping.suspend.empty()) {
    out.Set("suspend", absl::StrCat(grouping.suspendable.Text(), " ", grouping.suspend));
  }
  return out;
}

inline Json GroupJson(const Grouping& grouping) {
  const model::PodGroup& group = grouping.group;
  Json out = TermsJson(grouping);
  out.Set("name", group.meta.name);
  if (group.min_member.has_value()) out.Set("minMember", Json::Int(*group.min_member));
  if (group.min_sub_group.has_value()) out.Set("minSubGroup", Json::Int(*group.min_sub_group));
  SetTopology(group.topology, out);
  Json labels = Json::Object();
  for (const auto& [key, value] : group.meta.labels) labels.Set(key, Json::String(value));
  if (!labels.fields().empty()) out.Set("labels", std::move(labels));
  const model::OwnerReference& owner = group.meta.owners.front();
  out.Set("owner",
          absl::StrCat(owner.api_version, " ", owner.kind, " ", owner.name, " ", owner.uid));
  out.SetUnlessEmpty("podIn", grouping.sub_group);
  if (group.sub_groups.empty()) return out;
  Json sub_groups = Json::Array();
  for (const model::SubGroup& sub_group : group.sub_groups) sub_groups.Add(SubGroupJson(sub_group));
  out.Set("subGroups", std::move(sub_groups));
  return out;
}

// As `expect` of a case has it.
inline Json ResultJson(const absl::StatusOr<Grouping>& result) {
  Json out = Json::Object();
  if (!result.ok()) return out.Set("error", std::string(result.status().message()));
  switch (result->kind) {
    case Grouping::Kind::kLone:
      return out.Set("lone", TermsJson(*result));
    case Grouping::Kind::kGroup:
      return out.Set("group", GroupJson(*result));
    case Grouping::Kind::kNeeds:
      return out.Set("needs", result->needs.Text());
    case Grouping::Kind::kForeign:
      return out.Set("foreign", Json::Bool(true));
  }
  return out;
}

// The order of fields does not count.
inline Json Sorted(const Json& value) {
  if (value.is_array()) {
    Json out = Json::Array();
    for (const Json& item : value.items()) out.Add(Sorted(item));
    return out;
  }
  if (!value.is_object()) return value;
  std::map<std::string, Json> fields;
  for (const auto& [key, field] : value.fields()) fields.emplace(key, Sorted(field));
  Json out = Json::Object();
  for (auto& [key, field] : fields) out.Set(key, std::move(field));
  return out;
}

}  // namespace fairlead::grouping::testing
