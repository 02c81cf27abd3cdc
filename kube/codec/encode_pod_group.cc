// Writes by which pods are grouped: a PodGroup of KAI's, and the pod that names it.
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kube/codec/encode_parts.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

void WriteTopology(JsonWriter& json, const model::TopologyConstraint& topology) {
  if (topology == model::TopologyConstraint()) return;
  json.Key("topologyConstraint").BeginObject();
  json.FieldUnlessEmpty("topology", topology.topology);
  json.FieldUnlessEmpty("requiredTopologyLevel", topology.required_level);
  json.FieldUnlessEmpty("preferredTopologyLevel", topology.preferred_level);
  json.EndObject();
}

void WriteNumber(JsonWriter& json, absl::string_view key, const std::optional<int32_t>& number) {
  if (number.has_value()) json.Key(key).Int(*number);
}

void WriteSubGroups(JsonWriter& json, const std::vector<model::SubGroup>& sub_groups) {
  json.Key("subGroups").BeginArray();
  for (const model::SubGroup& sub_group : sub_groups) {
    json.BeginObject().Field("name", sub_group.name);
    json.FieldUnlessEmpty("parent", sub_group.parent);
    WriteNumber(json, "minMember", sub_group.min_member);
    WriteNumber(json, "minSubGroup", sub_group.min_sub_group);
    WriteTopology(json, sub_group.topology);
    json.EndObject();
  }
  json.EndArray();
}

void WriteSpan(JsonWriter& json, absl::string_view key, const std::optional<absl::Duration>& span) {
  if (span.has_value()) json.Field(key, absl::FormatDuration(*span));
}

}  // namespace

EncodedWrite EncodeCreatePodGroup(const model::PodGroup& group) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", ApiVersion(model::Kind::kPodGroup));
  json.Field("kind", model::KindName(model::Kind::kPodGroup));
  json.Key("metadata").BeginObject();
  json.Field("name", group.meta.name).Field("namespace", group.meta.ns);
  WriteMap(json, "labels", group.meta.labels);
  WriteMap(json, "annotations", group.meta.annotations);
  json.Key("ownerReferences").BeginArray();
  for (const model::OwnerReference& owner : group.meta.owners) {
    json.BeginObject().Field("apiVersion", owner.api_version).Field("kind", owner.kind);
    json.Field("name", owner.name).Field("uid", owner.uid);
    json.Key("controller").Bool(owner.controller).EndObject();
  }
  json.EndArray().EndObject().Key("spec").BeginObject();
  json.FieldUnlessEmpty("queue", group.queue);
  json.FieldUnlessEmpty("priorityClassName", group.priority_class_name);
  json.FieldUnlessEmpty("preemptibility", model::PreemptibilityWord(group.preemptibility));
  WriteNumber(json, "minMember", group.min_member);
  WriteNumber(json, "minSubGroup", group.min_sub_group);
  if (!group.sub_groups.empty()) WriteSubGroups(json, group.sub_groups);
  WriteTopology(json, group.topology);
  WriteSpan(json, "preemptionDelay", group.preemption_delay);
  WriteSpan(json, "stalenessGracePeriod", group.staleness_grace_period);
  json.EndObject().EndObject();
  return {"POST",
          absl::StrCat("/apis/", ApiVersion(model::Kind::kPodGroup), "/namespaces/",
                       EscapeSegment(group.meta.ns), "/podgroups"),
          kJson, json.Take()};
}

// A minimum takes the place of the other one. What is not said stays.
EncodedWrite EncodePodGroupUpdate(const model::PodGroup& group) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", group.meta.uid);
  json.FieldUnlessEmpty("resourceVersion", group.meta.resource_version);
  json.EndObject().Key("spec").BeginObject();
  for (const auto& [key, number] :
       {std::pair("minMember", group.min_member), std::pair("minSubGroup", group.min_sub_group)}) {
    json.Key(key);
    if (number.has_value()) {
      json.Int(*number);
    } else {
      json.Null();
    }
  }
  json.FieldUnlessEmpty("priorityClassName", group.priority_class_name);
  json.FieldUnlessEmpty("preemptibility", model::PreemptibilityWord(group.preemptibility));
  WriteSpan(json, "preemptionDelay", group.preemption_delay);
  WriteSpan(json, "stalenessGracePeriod", group.staleness_grace_period);
  WriteSubGroups(json, group.sub_groups);
  json.EndObject().EndObject();
  return {"PATCH", NamespacedPath(model::Kind::kPodGroup, group.meta.ns, group.meta.name),
          kMergePatch, json.Take()};
}

EncodedWrite EncodePodGroupOf(const model::SetPodGroup& action) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", action.uid);
  json.Key("annotations").BeginObject().Field(model::kPodGroupAnnotation, action.group);
  json.EndObject();
  if (!action.sub_group.empty()) {
    json.Key("labels").BeginObject().Field(model::kSubGroupLabel, action.sub_group).EndObject();
  }
  json.EndObject().EndObject();
  return {"PATCH", PodPath(action.ns, action.name), kMergePatch, json.Take()};
}

}  // namespace fairlead::kube
