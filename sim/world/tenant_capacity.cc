// The verbs of Tenants about capacity that is asked for without pods.
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/tenants.h"

namespace fairlead::sim::world {
namespace {

Json Object(const char* api_version, const char* kind, const Operation& operation) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata", {{"name", operation.Text("name")}, {"namespace", operation.Text("ns")}}}};
}

Json TemplateOf(const Operation& operation) {
  Json requests = {{"cpu", absl::StrCat(operation.Number("cpu"), "m")},
                   {"memory", absl::StrCat(operation.Number("memory"))}};
  Json resources = {{"requests", requests}};
  if (operation.Number("gpu") > 0) {
    const std::string gpus = absl::StrCat(operation.Number("gpu"));
    resources["requests"]["nvidia.com/gpu"] = gpus;
    resources["limits"] = {{"nvidia.com/gpu", gpus}};
  }
  Json object = Object("v1", "PodTemplate", operation);
  object["template"] = {
      {"metadata", Json::object()},
      {"spec",
       {{"containers", Json::array({{{"name", "c"}, {"image", "i"}, {"resources", resources}}})}}}};
  return object;
}

Json BufferOf(const Operation& operation) {
  Json object = Object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", operation);
  object["spec"] = {{"podTemplateRef", {{"name", operation.Text("template")}}},
                    {"replicas", operation.Number("replicas")}};
  return object;
}

Json RequestOf(const Operation& operation) {
  Json object = Object("autoscaling.x-k8s.io/v1", "ProvisioningRequest", operation);
  const bool checks = operation.Number("checks") != 0;
  object["spec"] = {
      {"provisioningClassName", checks ? "check-capacity.autoscaling.x-k8s.io"
                                       : "best-effort-atomic-scale-up.autoscaling.x-k8s.io"},
      {"podSets", Json::array({{{"count", operation.Number("pods")},
                                {"podTemplateRef", {{"name", operation.Text("template")}}}}})}};
  if (operation.Number("no_retry") != 0) object["spec"]["parameters"] = {{"noRetry", "true"}};
  return object;
}

}  // namespace

bool Tenants::DoCapacity(const Operation& operation) {
  const std::string& verb = operation.verb;
  const std::string name = operation.Text("name"), ns = operation.Text("ns");
  ApiServer& server = *parts_.server;
  if (verb == "capacity-template") {
    server.Create(ResourceType::kPodTemplates, TemplateOf(operation), kTenantActor).IgnoreError();
  } else if (verb == "capacity-buffer") {
    const Json wanted = BufferOf(operation);
    const auto change = [&](Json& object) {
      object["spec"] = wanted["spec"];
      return absl::OkStatus();
    };
    if (!server.Modify(ResourceType::kCapacityBuffers, ns, name, change, kTenantActor).ok()) {
      server.Create(ResourceType::kCapacityBuffers, wanted, kTenantActor).IgnoreError();
    }
  } else if (verb == "provisioning-request") {
    server.Create(ResourceType::kProvisioningRequests, RequestOf(operation), kTenantActor)
        .IgnoreError();
  } else if (verb == "delete-capacity") {
    const bool buffer = operation.Text("kind") == "buffer";
    server
        .Remove(buffer ? ResourceType::kCapacityBuffers : ResourceType::kProvisioningRequests, ns,
                name, kTenantActor)
        .IgnoreError();
  } else {
    return false;
  }
  return true;
}

}  // namespace fairlead::sim::world
