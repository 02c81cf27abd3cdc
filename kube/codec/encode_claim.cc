// Writes about ResourceClaims (resource.k8s.io/v1): what a scheduler must write before their pods
// are bound (k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources).
#include <algorithm>
#include <optional>

#include "kube/codec/encode_parts.h"
#include "kube/codec/format_time.h"
#include "kube/transport/http.h"
#include "scheduler/model/devices.h"

namespace fairlead::kube {
namespace {

void WriteRequirements(JsonWriter& json, absl::string_view key,
                       const std::vector<model::SelectorRequirement>& requirements) {
  if (requirements.empty()) return;
  json.Key(key).BeginArray();
  for (const model::SelectorRequirement& requirement : requirements) {
    json.BeginObject().Field("key", requirement.key);
    json.Field("operator", model::OperatorName(requirement.op));
    if (!requirement.values.empty()) WriteStrings(json, "values", requirement.values);
    json.EndObject();
  }
  json.EndArray();
}

// status.allocation.nodeSelector; none: the devices can be used anywhere.
void WriteNodeSelector(JsonWriter& json, const std::vector<model::NodeSelectorTerm>& terms) {
  if (terms.empty()) return;
  json.Key("nodeSelector").BeginObject().Key("nodeSelectorTerms").BeginArray();
  for (const model::NodeSelectorTerm& term : terms) {
    json.BeginObject();
    WriteRequirements(json, "matchExpressions", term.match_expressions);
    WriteRequirements(json, "matchFields", term.match_fields);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteConfig(JsonWriter& json, const std::vector<model::ClaimAllocation::Config>& config) {
  if (config.empty()) return;
  json.Key("config").BeginArray();
  for (const model::ClaimAllocation::Config& entry : config) {
    json.BeginObject().Field("source", entry.from_class ? "FromClass" : "FromClaim");
    if (!entry.config.requests.empty()) WriteStrings(json, "requests", entry.config.requests);
    json.Key("opaque").Raw(entry.config.opaque).EndObject();
  }
  json.EndArray();
}

// `at`: when it is made; none: unknown.
void WriteAllocation(JsonWriter& json, const model::ClaimAllocation& allocation,
                     std::optional<absl::Time> at) {
  json.Key("allocation").BeginObject().Key("devices").BeginObject().Key("results").BeginArray();
  for (const model::AllocatedDevice& device : allocation.devices) {
    json.BeginObject().Field("request", device.request).Field("driver", device.driver);
    json.Field("pool", device.pool).Field("device", device.device);
    if (device.admin_access) json.Key("adminAccess").Bool(true);
    if (!device.tolerations.empty()) json.Key("tolerations").Raw(device.tolerations);
    if (!device.binding_conditions.empty()) {
      WriteStrings(json, "bindingConditions", device.binding_conditions);
    }
    if (!device.binding_failure_conditions.empty()) {
      WriteStrings(json, "bindingFailureConditions", device.binding_failure_conditions);
    }
    json.EndObject();
  }
  json.EndArray();
  WriteConfig(json, allocation.config);
  json.EndObject();
  WriteNodeSelector(json, *allocation.node_terms);
  // From it on, any scheduler gives the devices as long as it does to become ready.
  if (at.has_value()) json.Field("allocationTimestamp", FormatSeconds(*at));
  json.EndObject();
}

// For both actions about a claim.
template <typename T>
void WritePreconditions(JsonWriter& json, const T& action) {
  json.FieldUnlessEmpty("uid", action.uid);
  json.FieldUnlessEmpty("resourceVersion", action.resource_version);
}

template <typename T>
std::string ClaimPath(const T& action, absl::string_view subresource = {}) {
  return NamespacedPath(model::Kind::kResourceClaim, action.ns, action.name, subresource);
}

}  // namespace

EncodedWrite EncodeClaimFinalizers(const model::ReserveClaim& action) {
  std::vector<std::string> finalizers = action.finalizers;
  if (std::find(finalizers.begin(), finalizers.end(), model::kClaimFinalizer) == finalizers.end()) {
    finalizers.emplace_back(model::kClaimFinalizer);
  }
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  WritePreconditions(json, action);
  WriteStrings(json, "finalizers", finalizers);
  json.EndObject().EndObject();
  return {"PATCH", ClaimPath(action), kMergePatch, json.Take()};
}

EncodedWrite EncodeReserveClaim(const model::ReserveClaim& action, absl::Time request_time) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  WritePreconditions(json, action);
  json.EndObject().Key("status").BeginObject();
  if (action.allocate) WriteAllocation(json, action.allocation, request_time);
  json.Key("reservedFor").BeginArray();
  for (const model::ReserveClaim::Consumer& pod : action.pods) {
    json.BeginObject().Field("resource", "pods").Field("name", pod.name).Field("uid", pod.uid);
    json.EndObject();
  }
  json.EndArray().EndObject().EndObject();
  return {"PATCH", ClaimPath(action, "status"), kStrategicMergePatch, json.Take()};
}

EncodedWrite EncodeDeallocateClaim(const model::DeallocateClaim& action) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  WritePreconditions(json, action);
  json.EndObject().Key("status").BeginObject();
  json.Key("allocation").Null().Key("reservedFor").Null();
  json.EndObject().EndObject();
  return {"PATCH", ClaimPath(action, "status"), kMergePatch, json.Take()};
}

std::string EncodeClaimStatus(const model::ResourceClaim& claim, absl::string_view node) {
  JsonWriter json;
  json.BeginObject();
  if (claim.allocated) {
    WriteAllocation(json,
                    {std::string(node), claim.devices, {}, std::vector{model::TermOfNode(node)}},
                    claim.allocated_at);
  }
  if (!claim.reserved_for.empty()) {
    json.Key("reservedFor").BeginArray();
    for (const std::string& uid : claim.reserved_for) {
      json.BeginObject().Field("resource", "pods").Field("uid", uid).EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

}  // namespace fairlead::kube
