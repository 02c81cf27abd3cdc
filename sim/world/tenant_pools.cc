// NodePool objects, and the verbs of Tenants about them.
#include <vector>

#include "absl/strings/str_split.h"
#include "sim/world/pool_objects.h"
#include "sim/world/tenants.h"

namespace fairlead::sim::world {
namespace {

Json List(const std::string& text) {
  const std::vector<std::string> items = absl::StrSplit(text, ',', absl::SkipEmpty());
  return items;
}

Json DisruptionFields(const Operation& fields) {
  Json out = Json::object();
  if (!fields.Text("policy").empty()) out["consolidationPolicy"] = fields.Text("policy");
  if (!fields.Text("after").empty()) out["consolidateAfter"] = fields.Text("after");
  if (!fields.Text("budget").empty()) {
    Json budget = {{"nodes", fields.Text("budget")}};
    if (!fields.Text("budget_reason").empty()) {
      budget["reasons"] = Json::array({fields.Text("budget_reason")});
    }
    out["budgets"] = Json::array({budget});
  }
  return out;
}

void MakeWrong(const std::string& how, Json& spec) {
  if (how == "provider") spec["provider"] = "no-such-provider";
  if (how == "after") spec["disruption"]["consolidateAfter"] = "soon";
  if (how == "schedule") {
    spec["disruption"]["budgets"] = Json::array(
        {{{"nodes", "10%"}, {"schedule", "every now and then, or so"}, {"duration", "1h"}}});
  }
  if (how == "sharing") spec["gpuSharing"] = {{"strategy", "MIGSingle"}};
}

}  // namespace

Json MakePool(const Operation& fields) {
  Json spec = Json::object();
  if (!fields.Text("types").empty()) spec["instanceTypes"] = List(fields.Text("types"));
  if (!fields.Text("zones").empty()) spec["zones"] = List(fields.Text("zones"));
  if (!fields.Text("tier").empty()) spec["labels"][kTierLabel] = fields.Text("tier");
  if (!fields.Text("label_zone").empty()) {
    spec["labels"]["topology.kubernetes.io/zone"] = fields.Text("label_zone");
  }
  if (!fields.Text("taint").empty()) {
    spec["taints"] =
        Json::array({{{"key", kPoolTaintKey}, {"value", "yes"}, {"effect", fields.Text("taint")}}});
  }
  if (fields.Number("startup") != 0) {
    spec["startupTaints"] = Json::array({{{"key", kStartupTaintKey}, {"effect", "NoSchedule"}}});
  }
  if (!fields.Text("max").empty()) spec["maxNodes"] = fields.Number("max");
  if (!fields.Text("weight").empty()) spec["weight"] = fields.Number("weight");
  if (fields.Number("spot") != 0) spec["allowSpot"] = true;
  const Json disruption = DisruptionFields(fields);
  if (!disruption.empty()) spec["disruption"] = disruption;
  MakeWrong(fields.Text("wrong"), spec);
  return {{"apiVersion", "fairlead.dev/v1alpha1"},
          {"kind", "NodePool"},
          {"metadata", {{"name", fields.Text("name")}}},
          {"spec", spec}};
}

bool Tenants::DoPools(const Operation& operation) {
  const std::string name = operation.Text("name");
  ApiServer& server = *parts_.server;
  if (operation.verb == "delete-pool") {
    server.Remove(ResourceType::kNodePools, "", name, kTenantActor).IgnoreError();
    return true;
  }
  if (operation.verb != "pool") return false;
  const Json wanted = MakePool(operation);
  const auto change = [&](Json& object) {
    object["spec"] = wanted["spec"];
    return absl::OkStatus();
  };
  if (!server.Modify(ResourceType::kNodePools, "", name, change, kTenantActor).ok()) {
    server.Create(ResourceType::kNodePools, wanted, kTenantActor).IgnoreError();
  }
  return true;
}

}  // namespace fairlead::sim::world
