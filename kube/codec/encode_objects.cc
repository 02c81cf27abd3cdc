// Writes about pod groups and node requests, which are custom kinds: merge patches, and JSON
// patches for their status.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/format_time.h"
#include "kube/codec/node_request_names.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_kind.h"

namespace fairlead::kube {
namespace {

// transitionID orders the conditions of all pools. KAI increments the highest one, with 32 bits. We
// use the time in seconds, which fits and grows even if former entries were removed. If that is not
// above the highest one, we increment the highest.
std::string NextTransitionId(const std::vector<model::SchedulingCondition>& conditions,
                             absl::Time request_time) {
  int64_t next = absl::ToUnixSeconds(request_time);
  for (const model::SchedulingCondition& condition : conditions) {
    int64_t id = 0;
    if (absl::SimpleAtoi(condition.transition_id, &id) && id < INT64_MAX) {
      next = std::max(next, id + 1);
    }
  }
  return absl::StrCat(next);
}

// KAI's one condition type. Its deprecated reason and message are the old form of reasons[]. Both
// are written, because KAI's tools read either.
void WriteSchedulingCondition(JsonWriter& json, const model::SetPodGroupSchedulability& action,
                              absl::string_view pool, absl::Time request_time) {
  const absl::string_view reason = action.reason;
  const std::string text = TruncateUtf8(absl::StripSuffix(action.message, "."), kMaxMessageBytes);
  json.BeginObject().Field("type", "UnschedulableOnNodePool").Field("status", "True");
  json.Field("nodePool", pool).Field("reason", "Unschedulable");
  const std::string prefix =
      action.names_pool ? absl::StrCat("Node-Pool '", pool, "': ") : std::string();
  json.Field("message",
             TruncateUtf8(absl::StrCat(prefix, reason, ": ", text, "."), kMaxMessageBytes));
  json.Key("reasons").BeginArray().BeginObject();
  json.Field("reason", reason).Field("message", text).EndObject().EndArray();
  json.Field("transitionID", NextTransitionId(action.conditions, request_time));
  json.Field("lastTransitionTime", FormatSeconds(request_time)).EndObject();
}

// "3.912": what ParseDecimal reads back to the same value.
std::string FormatPrice(int64_t micro_usd) {
  std::string text = absl::StrFormat("%d.%06d", micro_usd / 1000000, micro_usd % 1000000);
  text.erase(text.find_last_not_of('0') + 1);
  return std::string(absl::StripSuffix(text, "."));
}

// The new list: the entries of other pools unchanged, ours at the end. "null" if it is empty.
std::string SchedulingConditions(const model::SetPodGroupSchedulability& action,
                                 absl::Time request_time) {
  const absl::string_view pool =
      action.node_pool.empty() ? absl::string_view(model::kDefaultNodePool) : action.node_pool;
  JsonWriter json;
  json.BeginArray();
  bool any = false;
  for (const model::SchedulingCondition& condition : action.conditions) {
    if (condition.node_pool == pool) continue;
    json.Raw(condition.json);
    any = true;
  }
  if (!action.schedulability_json.empty() && action.own_condition == model::OwnCondition::kWrite) {
    WriteSchedulingCondition(json, action, pool, request_time);
    any = true;
  }
  json.EndArray();
  return any ? json.Take() : "null";
}

// The list that the action expects.
std::string ConditionsBefore(const model::SetPodGroupSchedulability& action) {
  if (action.conditions.empty()) return "null";
  JsonWriter json;
  json.BeginArray();
  for (const model::SchedulingCondition& condition : action.conditions) json.Raw(condition.json);
  return json.EndArray().Take();
}

// A field of a status: its name and its value as JSON. A null removes the field: the server drops
// nulls if the schema does not allow them. With `former`, it is changed only if it has that value;
// a missing field counts as null.
struct StatusField {
  absl::string_view name;
  std::string json;
  std::string former = {};
};

std::string TimeOrNull(const std::optional<absl::Time>& time) {
  return time.has_value() ? JsonQuoted(FormatExact(*time)) : "null";
}

std::string Quantities(const model::ResourceList& list) {
  if (list.empty()) return "null";
  JsonWriter json;
  json.BeginObject();
  for (const auto& [name, amount] : list) json.Field(name, model::FormatQuantity(name, amount));
  return json.EndObject().Take();
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
      const std::string at = absl::StrCat("/status/", field.name);
      if (!field.former.empty()) BeginOperation(json, "test", at).Raw(field.former).EndObject();
      BeginOperation(json, "add", at).Raw(field.json).EndObject();
    }
  } else {
    // A missing field counts as null.
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
  if (action.native) {
    return EncodePodGroupAnnotations(
        {action.ns, action.name, action.uid,
         model::StringMap{{model::kVerdictAnnotation, action.schedulability_json}}, true});
  }
  std::vector<StatusField> fields = {
      {"schedulability", action.schedulability_json.empty() ? "null" : action.schedulability_json}};
  if (action.own_condition != model::OwnCondition::kKeep) {
    fields.push_back({"schedulingConditions", SchedulingConditions(action, request_time),
                      ConditionsBefore(action)});
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
  return {"PATCH", NamespacedPath(model::PodGroupKind(action.native), action.ns, action.name),
          kMergePatch, json.Take()};
}

EncodedWrite EncodePodGroupScheduled(const model::SetPodGroupScheduled& action,
                                     absl::Time request_time) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject().Key("conditions").BeginArray().BeginObject();
  json.Field("type", model::kPodGroupScheduledCondition);
  json.Field("status", action.scheduled ? "True" : "False");
  json.Field("reason", action.scheduled ? "Scheduled" : "Unschedulable");
  json.Field("message", TruncateUtf8(action.message, kMaxMessageBytes));
  if (action.observed_generation > 0) {
    json.Key("observedGeneration").Int(action.observed_generation);
  }
  // The server keeps what a patch leaves out.
  if (action.turns) json.Field("lastTransitionTime", FormatSeconds(request_time));
  json.EndObject().EndArray().EndObject().EndObject();
  return {"PATCH", NamespacedPath(model::Kind::kNativePodGroup, action.ns, action.name, "status"),
          kStrategicMergePatch, json.Take()};
}

EncodedWrite EncodeKaiStatus(const model::SetKaiStatus& action, StatusShape shape) {
  const std::pair<absl::string_view, const model::ResourceList*> counts[] = {
      {"allocated", &action.counts.allocated},
      {"allocatedNonPreemptible", &action.counts.allocated_non_preemptible},
      {"requested", &action.counts.requested}};
  std::vector<StatusField> fields;
  JsonWriter json;
  if (action.kind == model::Kind::kPodGroup) {
    json.BeginObject();
    for (const auto& [name, amounts] : counts) {
      if (!amounts->empty()) json.Key(name).Raw(Quantities(*amounts));
    }
    fields.push_back({"resourcesStatus", json.EndObject().Take()});
  } else {
    for (const auto& [name, amounts] : counts) fields.push_back({name, Quantities(*amounts)});
    json.BeginArray();
    for (const std::string& child : action.child_queues) json.String(child);
    fields.push_back({"childQueues", json.EndArray().Take()});
  }
  return EncodeStatus(PathOf(action.kind, action.ns, action.name, "status"), action.uid, fields,
                      shape);
}

// A merge patch replaces the list. Fairlead is its only writer.
EncodedWrite EncodeConditions(const model::SetConditions& action, absl::Time request_time) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject();
  if (action.buffer.has_value()) {
    const model::SetConditions::Buffer& buffer = *action.buffer;
    json.Key("podTemplateRef").BeginObject().Field("name", buffer.pod_template).EndObject();
    json.Key("podTemplateGeneration").Int(buffer.pod_template_generation);
    json.Key("replicas").Int(buffer.replicas);
    json.Field("provisioningStrategy", model::kActiveCapacity);
  }
  json.Key("conditions").BeginArray();
  for (const model::Condition& condition : action.conditions) {
    json.BeginObject().Field("type", condition.type).Field("status", condition.status);
    json.Field("reason", condition.reason);
    json.Field("message", TruncateUtf8(condition.message, kMaxMessageBytes));
    if (condition.observed_generation > 0) {
      json.Key("observedGeneration").Int(condition.observed_generation);
    }
    json.Field("lastTransitionTime", FormatSeconds(condition.since.value_or(request_time)));
    json.EndObject();
  }
  json.EndArray().EndObject().EndObject();
  return {"PATCH", PathOf(action.kind, action.ns, action.name, "status"), kMergePatch, json.Take()};
}

EncodedWrite EncodeCreateNodeRequest(const model::NodeRequest& request) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", ApiVersion(model::Kind::kNodeRequest));
  json.Field("kind", "NodeRequest").Key("metadata").BeginObject();
  json.Field("name", request.meta.name);
  WriteMap(json, "labels", request.meta.labels);
  WriteMap(json, "annotations", request.meta.annotations);
  if (!request.finalizers.empty()) WriteStrings(json, "finalizers", request.finalizers);
  json.EndObject().Key("spec").BeginObject();
  json.FieldUnlessEmpty("pool", request.pool).Field("provider", request.provider);
  json.Field("instanceType", request.instance_type).FieldUnlessEmpty("zone", request.zone);
  json.Key("spot").Bool(request.spot);
  json.FieldUnlessEmpty("reservation", request.reservation);
  if (request.price_known) {
    json.Field("priceUsdPerHour", FormatPrice(request.price_micro_usd_per_hour));
  }
  json.FieldUnlessEmpty("queue", request.queue);
  WriteStrings(json, "reasonWorkloads", request.reason_workloads);
  if (!request.replaces.empty()) {
    json.Key("replaces").BeginArray();
    for (const model::ReplacedRequest& one : request.replaces) {
      json.BeginObject().Field("name", one.name).Field("uid", one.uid).EndObject();
    }
    json.EndArray();
  }
  json.EndObject().EndObject();
  return {"POST", CollectionPath(model::Kind::kNodeRequest), kJson, json.Take()};
}

EncodedWrite EncodeNodeRequestStatus(const model::NodeRequest& request, StatusShape shape) {
  return EncodeStatus(ObjectPath(model::Kind::kNodeRequest, request.meta.name, "status"),
                      request.meta.uid,
                      {{"phase", JsonQuoted(PhaseName(request.phase))},
                       {"nodeName", JsonQuoted(request.node_name)},
                       {"providerID", JsonQuoted(request.provider_id)},
                       {"allocatable", Quantities(request.allocatable)},
                       {"message", JsonQuoted(TruncateUtf8(request.message, kMaxMessageBytes))},
                       {"failure", JsonQuoted(request.failure)},
                       {"launchedAt", TimeOrNull(request.launched_at)},
                       {"registeredAt", TimeOrNull(request.registered_at)},
                       {"readyAt", TimeOrNull(request.ready_at)},
                       {"unneededSince", TimeOrNull(request.unneeded_since)},
                       {"failedAt", TimeOrNull(request.failed_at)}},
                      shape);
}

EncodedWrite EncodeNodeRequestFinalizer(const model::DeleteNodeRequest& action) {
  const auto ours = std::find(action.finalizers.begin(), action.finalizers.end(),
                              std::string(model::kMachineFinalizer));
  if (ours == action.finalizers.end()) return {};
  // Other finalizers stay: ours is removed by its index, if it is still there.
  const std::string at = absl::StrCat("/metadata/finalizers/", ours - action.finalizers.begin());
  JsonWriter json;
  json.BeginArray();
  BeginOperation(json, "test", "/metadata/uid").String(action.uid).EndObject();
  BeginOperation(json, "test", at).String(model::kMachineFinalizer).EndObject();
  json.BeginObject().Field("op", "remove").Field("path", at).EndObject().EndArray();
  return {"PATCH", ObjectPath(model::Kind::kNodeRequest, action.name), kJsonPatch, json.Take()};
}

EncodedWrite EncodeDeleteNodeRequest(const model::DeleteNodeRequest& action) {
  return EncodeDelete(ObjectPath(model::Kind::kNodeRequest, action.name), action.uid);
}

}  // namespace fairlead::kube
