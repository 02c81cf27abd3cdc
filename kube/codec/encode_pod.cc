// Writes about pods: binding, eviction, status.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/format_time.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

// ---- a protobuf writer, as far as a Binding requires it -----------------------------------------

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// A length-delimited field: a string or a message.
void AppendBytes(uint32_t field, absl::string_view bytes, std::string& out) {
  constexpr uint32_t kLengthDelimited = 2;
  AppendVarint(uint64_t{field} << 3 | kLengthDelimited, out);
  AppendVarint(bytes.size(), out);
  out.append(bytes.data(), bytes.size());
}

void AppendMap(uint32_t field, const model::StringMap& map, std::string& out) {
  for (const auto& [key, value] : map) {
    std::string entry;
    AppendBytes(1, key, entry);
    AppendBytes(2, ToValidUtf8(value), entry);
    AppendBytes(field, entry, out);
  }
}

std::string BindingMessage(const model::BindPod& action) {
  std::string meta;
  AppendBytes(1, action.name, meta);
  AppendBytes(3, action.ns, meta);
  if (!action.uid.empty()) AppendBytes(5, action.uid, meta);
  AppendMap(11, action.labels, meta);
  AppendMap(12, action.annotations, meta);
  std::string target;  // core.v1.ObjectReference
  AppendBytes(1, "Node", target);
  AppendBytes(3, action.node, target);
  std::string binding;
  AppendBytes(1, meta, binding);
  AppendBytes(2, target, binding);
  return binding;
}

std::string Enveloped(absl::string_view api_version, absl::string_view kind,
                      absl::string_view message) {
  std::string type;
  AppendBytes(1, api_version, type);
  AppendBytes(2, kind, type);
  std::string out("k8s\0", 4);
  AppendBytes(1, type, out);
  AppendBytes(2, message, out);
  return out;
}

// {type, status, reason, message, lastTransitionTime}, left open for more.
JsonWriter& BeginCondition(JsonWriter& json, absl::string_view type, absl::string_view status,
                           absl::string_view reason, absl::string_view message,
                           absl::Time request_time) {
  json.BeginObject().Field("type", type).Field("status", status).Field("reason", reason);
  json.Field("message", TruncateUtf8(message, kMaxMessageBytes));
  return json.Field("lastTransitionTime", FormatSeconds(request_time));
}

}  // namespace

EncodedWrite EncodeBind(const model::BindPod& action) {
  return {"POST", PodPath(action.ns, action.name, "binding"), kProtobuf,
          Enveloped("v1", "Binding", BindingMessage(action))};
}

EncodedWrite EncodeEvict(const model::EvictPod& action) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "policy/v1").Field("kind", "Eviction");
  json.Key("metadata").BeginObject();
  json.Field("name", action.name).Field("namespace", action.ns).EndObject();
  if (!action.uid.empty()) {
    json.Key("deleteOptions").BeginObject().Key("preconditions").BeginObject();
    json.Field("uid", action.uid).EndObject().EndObject();
  }
  json.EndObject();
  return {"POST", PodPath(action.ns, action.name, "eviction"), kJson, json.Take()};
}

EncodedWrite EncodeDisruptionTarget(const model::EvictPod& action, absl::Time request_time) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject().Key("conditions").BeginArray();
  BeginCondition(json, "DisruptionTarget", "True", action.reason, action.message, request_time)
      .EndObject();
  json.EndArray().EndObject().EndObject();
  return {"PATCH", PodPath(action.ns, action.name, "status"), kStrategicMergePatch, json.Take()};
}

EncodedWrite EncodeNominatedNode(const model::NominateNode& action) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject().Field("nominatedNodeName", action.node);
  json.EndObject().EndObject();
  return {"PATCH", PodPath(action.ns, action.name, "status"), kStrategicMergePatch, json.Take()};
}

EncodedWrite EncodePodUnschedulable(const model::SetPodUnschedulable& action,
                                    absl::Time request_time) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", action.uid);
  json.Key("annotations").BeginObject().Key(model::kVerdictAnnotation);
  if (action.verdict_json.empty()) {
    json.Null();
  } else {
    json.String(action.verdict_json);
  }
  json.EndObject().EndObject();
  json.Key("status").BeginObject().Key("conditions").BeginArray();
  // Without a reason, removes the verdict from a pod that is on its node.
  BeginCondition(json, model::kPodScheduledCondition, action.reason.empty() ? "True" : "False",
                 action.reason, action.message, request_time);
  if (action.observed_generation > 0) {
    json.Key("observedGeneration").Int(action.observed_generation);
  }
  json.EndObject().EndArray().Key("nominatedNodeName");
  if (action.nominated_node.empty()) {
    json.Null();
  } else {
    json.String(action.nominated_node);
  }
  json.EndObject().EndObject();
  return {"PATCH", PodPath(action.ns, action.name, "status"), kStrategicMergePatch, json.Take()};
}

}  // namespace fairlead::kube
