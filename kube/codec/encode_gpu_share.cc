// Writes about shared GPUs: the pod that holds one, and config maps for containers.
#include "absl/strings/str_cat.h"
#include "kube/codec/encode_parts.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

// The name of a pod of ours, for the program in it.
void WriteOwnName(JsonWriter& json, absl::string_view name, absl::string_view field) {
  json.BeginObject().Field("name", name).Key("valueFrom").BeginObject();
  json.Key("fieldRef").BeginObject().Field("fieldPath", field).EndObject();
  json.EndObject().EndObject();
}

void WriteOneGpu(JsonWriter& json) {
  json.Key("resources").BeginObject();
  for (const char* what : {"limits", "requests"}) {
    json.Key(what).BeginObject().Field(model::kGpuName, "1").EndObject();
  }
  json.EndObject();
}

// Requests only the GPU: the scheduler reserved no other capacity for this pod.
void WriteContainer(JsonWriter& json, const model::CreateGpuReservation& action) {
  json.BeginObject().Field("name", "gpu-index").Field("image", action.image);
  if (!action.command.empty()) WriteStrings(json, "command", action.command);
  json.Key("env").BeginArray();
  WriteOwnName(json, "POD_NAME", "metadata.name");
  WriteOwnName(json, "POD_NAMESPACE", "metadata.namespace");
  json.EndArray();
  WriteOneGpu(json);
  json.Key("securityContext").BeginObject();
  json.Key("allowPrivilegeEscalation").Bool(false);
  json.Key("readOnlyRootFilesystem").Bool(true);
  json.Key("capabilities").BeginObject();
  WriteStrings(json, "drop", {"ALL"});
  json.EndObject().EndObject().EndObject();
}

}  // namespace

EncodedWrite EncodeGpuReservation(const model::CreateGpuReservation& action) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "Pod");
  json.Key("metadata").BeginObject().Field("name", action.name).Field("namespace", action.ns);
  WriteMap(json, "labels",
           {{"app", model::kReservationApp},
            {"app.kubernetes.io/managed-by", "fairlead"},
            {model::kGpuGroupLabel, action.group}});
  WriteMap(json, "annotations", {{"karpenter.sh/do-not-disrupt", "true"}});
  json.EndObject().Key("spec").BeginObject();
  // No scheduler is involved, as in KAI: only the kubelet checks the pod.
  json.Field("nodeName", action.node);
  json.FieldUnlessEmpty("serviceAccountName", action.service_account);
  json.FieldUnlessEmpty("runtimeClassName", action.runtime_class);
  json.Key("tolerations").BeginArray().BeginObject().Field("operator", "Exists").EndObject();
  json.EndArray().Key("terminationGracePeriodSeconds").Int(5);
  json.Key("securityContext").BeginObject();
  json.Key("runAsNonRoot").Bool(true).Key("runAsUser").Int(65532);
  json.Key("seccompProfile").BeginObject().Field("type", "RuntimeDefault").EndObject().EndObject();
  json.Key("containers").BeginArray();
  WriteContainer(json, action);
  json.EndArray().EndObject().EndObject();
  return {"POST", absl::StrCat("/api/v1/namespaces/", EscapeSegment(action.ns), "/pods"), kJson,
          json.Take()};
}

EncodedWrite EncodeDeletePod(const model::DeletePod& action) {
  return EncodeDelete(PodPath(action.ns, action.name), action.uid);
}

EncodedWrite EncodeConfigMap(const model::ApplyConfigMap& action) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "ConfigMap");
  json.Key("metadata").BeginObject().Field("name", action.name).Field("namespace", action.ns);
  json.Key("ownerReferences").BeginArray().BeginObject();
  json.Field("apiVersion", "v1").Field("kind", "Pod").Field("name", action.owner_pod);
  json.Field("uid", action.owner_uid).EndObject().EndArray().EndObject();
  WriteMap(json, "data", action.data);
  json.EndObject();
  return {"PATCH",
          absl::StrCat("/api/v1/namespaces/", EscapeSegment(action.ns), "/configmaps/",
                       EscapeSegment(action.name), "?fieldManager=fairlead&force=true"),
          kApplyPatch, json.Take()};
}

}  // namespace fairlead::kube
