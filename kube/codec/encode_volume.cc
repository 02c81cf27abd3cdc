// Writes about volumes and claims: what a scheduler writes before it binds a pod whose claims wait
// for it (k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding, BindPodVolumes).
#include "kube/codec/encode_parts.h"
#include "kube/transport/http.h"
#include "scheduler/model/volumes.h"

namespace fairlead::kube {
namespace {

// metadata with the preconditions of either action, and an annotation unless its value is empty.
template <typename T>
void WriteMetadata(JsonWriter& json, const T& action, absl::string_view annotation,
                   absl::string_view value) {
  json.Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", action.uid);
  json.FieldUnlessEmpty("resourceVersion", action.resource_version);
  if (!value.empty()) json.Key("annotations").BeginObject().Field(annotation, value).EndObject();
  json.EndObject();
}

}  // namespace

EncodedWrite EncodeBindVolume(const model::BindVolume& action) {
  JsonWriter json;
  json.BeginObject();
  WriteMetadata(json, action, model::kBoundByControllerAnnotation, action.prebound ? "" : "yes");
  json.Key("spec").BeginObject().Key("claimRef").BeginObject();
  json.Field("apiVersion", ApiVersion(model::Kind::kPersistentVolumeClaim));
  json.Field("kind", model::KindName(model::Kind::kPersistentVolumeClaim));
  json.Field("namespace", action.claim_ns).Field("name", action.claim_name);
  json.Field("uid", action.claim_uid);
  json.EndObject().EndObject().EndObject();
  return {"PATCH", ObjectPath(model::Kind::kPersistentVolume, action.volume), kMergePatch,
          json.Take()};
}

EncodedWrite EncodeSelectVolumeNode(const model::SelectVolumeNode& action) {
  JsonWriter json;
  json.BeginObject();
  WriteMetadata(json, action, model::kSelectedNodeAnnotation, action.node);
  json.EndObject();
  return {"PATCH", NamespacedPath(model::Kind::kPersistentVolumeClaim, action.ns, action.name),
          kMergePatch, json.Take()};
}

}  // namespace fairlead::kube
