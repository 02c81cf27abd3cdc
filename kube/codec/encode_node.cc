// Writes about nodes.
#include <utility>

#include "kube/codec/encode_parts.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

void WriteQuantities(JsonWriter& json, absl::string_view key, const model::ResourceList& list) {
  json.Key(key).BeginObject();
  for (const auto& [name, amount] : list) json.Field(name, model::FormatQuantity(name, amount));
  json.EndObject();
}

// Conditions merge by type: conditions that are not named here are unchanged.
void WriteReady(JsonWriter& json, bool ready) {
  json.Key("conditions").BeginArray();
  json.BeginObject().Field("type", "Ready").Field("status", ready ? "True" : "False");
  json.Field("reason", ready ? "NodeReady" : "NodeNotReady").EndObject().EndArray();
}

}  // namespace

EncodedWrite EncodeCreateNode(const model::Node& node) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "Node");
  json.Key("metadata").BeginObject().Field("name", node.meta.name);
  WriteMap(json, "labels", node.meta.labels);
  WriteMap(json, "annotations", node.meta.annotations);
  json.EndObject().Key("spec").BeginObject();
  json.FieldUnlessEmpty("providerID", node.provider_id);
  if (node.unschedulable) json.Key("unschedulable").Bool(true);
  if (!node.taints.empty()) WriteTaints(json, "taints", node.taints);
  json.EndObject().Key("status").BeginObject();
  WriteQuantities(json, "capacity", node.allocatable);
  WriteQuantities(json, "allocatable", node.allocatable);
  // As a kubelet registers; a node without conditions counts as ready.
  WriteReady(json, node.ready);
  json.EndObject().EndObject();
  return {"POST", CollectionPath(model::Kind::kNode), kJson, json.Take()};
}

EncodedWrite EncodeNodeStatus(const model::Node& node) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, node.meta.uid);
  json.Key("status").BeginObject();
  WriteQuantities(json, "capacity", node.allocatable);
  WriteQuantities(json, "allocatable", node.allocatable);
  WriteReady(json, node.ready);
  json.EndObject().EndObject();
  return {"PATCH", ObjectPath(model::Kind::kNode, node.meta.name, "status"), kStrategicMergePatch,
          json.Take()};
}

EncodedWrite EncodeDeleteNode(absl::string_view name, absl::string_view uid) {
  return EncodeDelete(ObjectPath(model::Kind::kNode, name), uid);
}

EncodedWrite EncodeNodeTaints(const model::Node& node) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", node.meta.uid);
  json.FieldUnlessEmpty("resourceVersion", node.meta.resource_version).EndObject();
  json.Key("spec").BeginObject();
  WriteTaints(json, "taints", node.taints);
  json.EndObject().EndObject();
  return {"PATCH", ObjectPath(model::Kind::kNode, node.meta.name), kMergePatch, json.Take()};
}

}  // namespace fairlead::kube
