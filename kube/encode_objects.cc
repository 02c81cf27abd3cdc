// Writes about pod groups and node requests: custom kinds, so merge patches and, of their status,
// JSON patches.
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "kube/encode_parts.h"
#include "kube/http.h"
#include "kube/node_request_names.h"
#include "kube/utf8.h"

namespace fairlead::kube {
namespace {

// KAI's one condition type. Its deprecated reason and message are the old form of reasons[]; both
// are written, because its tools read either. transitionID orders the conditions of several pools;
// KAI counts, we take the time in milliseconds, which grows without anything to be remembered.
void WriteSchedulingCondition(JsonWriter& json, absl::string_view reason, absl::string_view message,
                              absl::Time request_time) {
  const std::string text = TruncateUtf8(absl::StripSuffix(message, "."), kMaxMessageBytes);
  json.BeginObject().Field("type", "UnschedulableOnNodePool").Field("status", "True");
  json.Field("nodePool", "default").Field("reason", "Unschedulable");
  json.Field("message", TruncateUtf8(absl::StrCat(reason, ": ", text, "."), kMaxMessageBytes));
  json.Key("reasons").BeginArray().BeginObject();
  json.Field("reason", reason).Field("message", text).EndObject().EndArray();
  json.Field("transitionID", absl::StrCat(absl::ToUnixMillis(request_time)));
  json.Field("lastTransitionTime", FormatSeconds(request_time)).EndObject();
}

// "3.912": what ParseDecimal reads back to the same value.
std::string FormatPrice(int64_t micro_usd) {
  std::string text = absl::StrFormat("%d.%06d", micro_usd / 1000000, micro_usd % 1000000);
  text.erase(text.find_last_not_of('0') + 1);
  return std::string(absl::StripSuffix(text, "."));
}

// A field of a status: its name and its value as JSON. A null takes the field away: the server
// drops nulls where the schema does not allow them.
struct StatusField {
  absl::string_view name;
  std::string json;
};

std::string Quoted(absl::string_view text) { return JsonWriter().String(text).Take(); }

std::string TimeOrNull(const std::optional<absl::Time>& time) {
  return time.has_value() ? Quoted(FormatExact(*time)) : "null";
}

JsonWriter& BeginOperation(JsonWriter& json, absl::string_view operation, absl::string_view path) {
  return json.BeginObject().Field("op", operation).Field("path", path).Key("value");
}

EncodedWrite EncodeStatus(std::string path, absl::string_view uid,
                          const std::vector<StatusField>& fields, StatusShape shape) {
  JsonWriter json;
  json.BeginArray();
  if (!uid.empty()) BeginOperation(json, "test", "/metadata/uid").String(uid).EndObject();
  if (shape == StatusShape::kFields) {
    for (const StatusField& field : fields) {
      BeginOperation(json, "add", absl::StrCat("/status/", field.name)).Raw(field.json).EndObject();
    }
  } else {
    // What is missing passes for null.
    BeginOperation(json, "test", "/status").Null().EndObject();
    BeginOperation(json, "add", "/status").BeginObject();
    for (const StatusField& field : fields) json.Key(field.name).Raw(field.json);
    json.EndObject().EndObject();
  }
  json.EndArray();
  return {"PATCH", std::move(path), kJsonPatch, json.Take()};
}

}  // namespace

EncodedWrite EncodePodGroupSchedulability(const model::SetPodGroupSchedulability& action,
                                          absl::Time request_time, StatusShape shape) {
  std::vector<StatusField> fields = {{"schedulability", "null"}, {"schedulingConditions", "null"}};
  if (!action.schedulability_json.empty()) {
    fields[0].json = action.schedulability_json;
    JsonWriter conditions;
    conditions.BeginArray();
    WriteSchedulingCondition(conditions, action.reason, action.message, request_time);
    fields[1].json = conditions.EndArray().Take();
  }
  return EncodeStatus(NamespacedPath(model::Kind::kPodGroup, action.ns, action.name, "status"),
                      action.uid, fields, shape);
}

EncodedWrite EncodePodGroupAnnotations(const model::SetPodGroupAnnotations& action) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("uid", action.uid).Key("annotations").BeginObject();
  for (const auto& [key, value] : action.annotations) {
    json.Key(key);
    if (value.empty()) {
      json.Null();
    } else {
      json.String(value);
    }
  }
  json.EndObject().EndObject().EndObject();
  return {"PATCH", NamespacedPath(model::Kind::kPodGroup, action.ns, action.name), kMergePatch,
          json.Take()};
}

EncodedWrite EncodeCreateNodeRequest(const model::NodeRequest& request) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", ApiVersion(model::Kind::kNodeRequest));
  json.Field("kind", "NodeRequest").Key("metadata").BeginObject();
  json.Field("name", request.meta.name);
  WriteMap(json, "labels", request.meta.labels);
  WriteMap(json, "annotations", request.meta.annotations);
  json.EndObject().Key("spec").BeginObject();
  json.FieldUnlessEmpty("pool", request.pool).Field("provider", request.provider);
  json.Field("instanceType", request.instance_type).FieldUnlessEmpty("zone", request.zone);
  json.Key("spot").Bool(request.spot);
  json.Field("priceUsdPerHour", FormatPrice(request.price_micro_usd_per_hour));
  json.FieldUnlessEmpty("queue", request.queue);
  WriteStrings(json, "reasonWorkloads", request.reason_workloads);
  json.EndObject().EndObject();
  return {"POST", CollectionPath(model::Kind::kNodeRequest), kJson, json.Take()};
}

EncodedWrite EncodeNodeRequestStatus(const model::NodeRequest& request, StatusShape shape) {
  return EncodeStatus(ObjectPath(model::Kind::kNodeRequest, request.meta.name, "status"),
                      request.meta.uid,
                      {{"phase", Quoted(PhaseName(request.phase))},
                       {"nodeName", Quoted(request.node_name)},
                       {"message", Quoted(TruncateUtf8(request.message, kMaxMessageBytes))},
                       {"failure", Quoted(request.failure)},
                       {"launchedAt", TimeOrNull(request.launched_at)},
                       {"registeredAt", TimeOrNull(request.registered_at)},
                       {"readyAt", TimeOrNull(request.ready_at)},
                       {"unneededSince", TimeOrNull(request.unneeded_since)},
                       {"failedAt", TimeOrNull(request.failed_at)}},
                      shape);
}

EncodedWrite EncodeDeleteNodeRequest(const model::DeleteNodeRequest& action) {
  return EncodeDelete(ObjectPath(model::Kind::kNodeRequest, action.name), action.uid);
}

}  // namespace fairlead::kube
