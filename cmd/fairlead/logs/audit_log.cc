#include "cmd/fairlead/logs/audit_log.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/json_writer.h"
#include "cmd/fairlead/logs/logger.h"
#include "kube/codec/node_request_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::cmd {
namespace {

JsonWriter Begin(absl::Time now, absl::string_view event) {
  JsonWriter json;
  json.BeginObject().Field("time", LogTime(now)).Field("event", event);
  return json;
}

void AddWhat(JsonWriter& json, const model::EvictPod& evict) {
  json.Field("namespace", evict.ns).Field("pod", evict.name).Field("uid", evict.uid);
  json.Field("reason", evict.reason).Field("message", evict.message);
}

void AddWhat(JsonWriter& json, const model::SetSuspended& set) {
  const model::Suspendable& object = set.object;
  json.Field("namespace", object.ns).Field("apiVersion", object.api_version);
  json.Field("kind", object.kind).Field("name", object.name).Field("uid", object.uid);
  json.FieldUnlessEmpty("message", object.reason);
  if (object.pods.empty()) return;
  json.Key("pods").BeginArray();
  for (const model::Suspendable::Pod& pod : object.pods) json.String(pod.name);
  json.EndArray();
}

void AddWhat(JsonWriter& json, const model::CreateNodeRequest& create) {
  const model::NodeRequest& request = *create.request;
  json.Field("nodeRequest", request.meta.name).Field("instanceType", request.instance_type);
  json.FieldUnlessEmpty("zone", request.zone).FieldUnlessEmpty("nodePool", request.pool);
  json.Field("provider", request.provider);
  json.Field("capacityType", request.CapacityType());
  json.FieldUnlessEmpty("reservation", request.reservation);
  json.Key("priceUsdPerHour");
  if (request.price_known) {
    const int64_t price = request.price_micro_usd_per_hour;
    json.Raw(
        absl::StrFormat("%d.%06d", price / model::kMicroUsdPerUsd, price % model::kMicroUsdPerUsd));
  } else {
    json.Null();
  }
  if (!request.replaces.empty()) {
    json.Key("replaces").BeginArray();
    for (const model::ReplacedRequest& one : request.replaces) json.String(one.name);
    json.EndArray();
  }
  json.FieldUnlessEmpty("queue", request.queue).Key("workloads").BeginArray();
  for (const std::string& workload : request.reason_workloads) json.String(workload);
  json.EndArray();
}

void AddWhat(JsonWriter& json, const model::UpdateNodeRequestStatus& update) {
  const model::NodeRequest& request = *update.request;
  json.Field("nodeRequest", request.meta.name).Field("phase", kube::PhaseName(request.phase));
  json.FieldUnlessEmpty("node", request.node_name);
  json.FieldUnlessEmpty("failure", request.failure).FieldUnlessEmpty("message", request.message);
}

void AddWhat(JsonWriter& json, const model::LaunchNode& launch) {
  json.Field("nodeRequest", launch.request->meta.name);
  json.Field("instanceType", launch.request->instance_type);
  json.Field("provider", launch.request->provider);
}

void AddWhat(JsonWriter& json, const model::TerminateNode& terminate) {
  json.Field("nodeRequest", terminate.request_name).Field("provider", terminate.provider);
  json.FieldUnlessEmpty("node", terminate.node_name);
  json.FieldUnlessEmpty("providerID", terminate.provider_id);
}

void AddWhat(JsonWriter& json, const model::DeleteNodeRequest& remove) {
  json.Field("nodeRequest", remove.name);
}

// Null for actions that are not audited.
const char* EventOf(const model::Action& action) {
  return std::visit(
      []<typename T>(const T& what) -> const char* {
        if constexpr (std::is_same_v<T, model::SetSuspended>) {
          return what.suspended ? "suspend" : "release";
        }
        if constexpr (std::is_same_v<T, model::EvictPod>) return "evict";
        if constexpr (std::is_same_v<T, model::CreateNodeRequest>) return "provision";
        if constexpr (std::is_same_v<T, model::UpdateNodeRequestStatus>) return "phase";
        if constexpr (std::is_same_v<T, model::LaunchNode>) return "launch";
        if constexpr (std::is_same_v<T, model::TerminateNode>) return "terminate";
        if constexpr (std::is_same_v<T, model::DeleteNodeRequest>) return "forget";
        return nullptr;
      },
      action.what);
}

}  // namespace

void AuditLog::Sent(const model::Action& action, int64_t decision, absl::Time now) {
  const char* const event = EventOf(action);
  if (event == nullptr) return;
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    phases_[create->request->meta.name] = model::NodeRequestPhase::kPending;
  } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    const auto [told, is_new] =
        phases_.try_emplace(update->request->meta.name, update->request->phase);
    if (!is_new && std::exchange(told->second, update->request->phase) == update->request->phase) {
      return;
    }
  } else if (const auto* remove = std::get_if<model::DeleteNodeRequest>(&action.what)) {
    phases_.erase(remove->name);
  }
  under_way_.insert(action.id);
  JsonWriter json = Begin(now, event);
  json.Key("id").Int(static_cast<int64_t>(action.id)).Key("decision").Int(decision);
  std::visit(
      [&json](const auto& what) {
        if constexpr (requires { AddWhat(json, what); }) AddWhat(json, what);
      },
      action.what);
  sink_(json.EndObject().Take() + "\n");
}

void AuditLog::Answered(const model::ActionResult& result, absl::Time now) {
  if (under_way_.erase(result.action_id) == 0) return;
  JsonWriter json = Begin(now, "answer");
  json.Key("id").Int(static_cast<int64_t>(result.action_id));
  json.Field("code", absl::StatusCodeToString(result.status.code()));
  json.FieldUnlessEmpty("message", result.status.message());
  sink_(json.EndObject().Take() + "\n");
}

}  // namespace fairlead::cmd
