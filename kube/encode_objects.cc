// Writes about pod groups and node requests: custom kinds, so merge patches.
#include <utility>

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

void WriteTime(JsonWriter& json, absl::string_view key, const std::optional<absl::Time>& time) {
  json.Key(key);
  if (time.has_value()) {
    json.String(FormatExact(*time));
  } else {
    json.Null();
  }
}

}  // namespace

EncodedWrite EncodePodGroupSchedulability(const model::SetPodGroupSchedulability& action,
                                          absl::Time request_time) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject();
  if (action.schedulability_json.empty()) {
    json.Key("schedulability").Null().Key("schedulingConditions").Null();
  } else {
    json.Key("schedulability").Raw(action.schedulability_json);
    json.Key("schedulingConditions").BeginArray();
    WriteSchedulingCondition(json, action.reason, action.message, request_time);
    json.EndArray();
  }
  json.EndObject().EndObject();
  return {"PATCH", NamespacedPath(model::Kind::kPodGroup, action.ns, action.name, "status"),
          kMergePatch, json.Take()};
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

EncodedWrite EncodeNodeRequestStatus(const model::NodeRequest& request) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, request.meta.uid);
  json.Key("status").BeginObject().Field("phase", PhaseName(request.phase));
  json.Field("nodeName", request.node_name);
  json.Field("message", TruncateUtf8(request.message, kMaxMessageBytes));
  json.Field("failure", request.failure);
  WriteTime(json, "launchedAt", request.launched_at);
  WriteTime(json, "registeredAt", request.registered_at);
  WriteTime(json, "readyAt", request.ready_at);
  WriteTime(json, "unneededSince", request.unneeded_since);
  WriteTime(json, "failedAt", request.failed_at);
  json.EndObject().EndObject();
  return {"PATCH", ObjectPath(model::Kind::kNodeRequest, request.meta.name, "status"), kMergePatch,
          json.Take()};
}

EncodedWrite EncodeDeleteNodeRequest(const model::DeleteNodeRequest& action) {
  return EncodeDelete(ObjectPath(model::Kind::kNodeRequest, action.name), action.uid);
}

}  // namespace fairlead::kube
