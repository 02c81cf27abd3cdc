// Of Tenants: devices, and claims of pods.
#include <vector>

#include "absl/strings/str_split.h"
#include "sim/world/device_objects.h"
#include "sim/world/facts.h"
#include "sim/world/tenants.h"

namespace fairlead::sim::world {
bool Tenants::DoDevices(const Operation& operation) {
  const std::string& verb = operation.verb;
  ApiServer& server = *parts_.server;
  if (verb == "device-class") {
    server.Create(ResourceType::kDeviceClasses, MakeDeviceClass(operation), kTenantActor)
        .IgnoreError();
  } else if (verb == "delete-device-class") {
    server.Remove(ResourceType::kDeviceClasses, "", operation.Text("name"), kTenantActor)
        .IgnoreError();
  } else if (verb == "devices") {
    parts_.driver->SetDevices(operation.Text("node"), operation.Number("count"),
                              absl::StrSplit(operation.Text("models"), ',', absl::SkipEmpty()));
  } else if (verb == "delete-claims") {
    DeleteClaims(operation);
  } else if (verb == "refuse-claims") {
    server.RefuseClaims(operation.Text("prefix"));
  } else {
    return false;
  }
  return true;
}

void Tenants::DeleteClaims(const Operation& operation) {
  for (const auto& [ns, name] : PodsOf(operation)) {
    const Json* const pod = parts_.server->Find(ResourceType::kPods, ns, name);
    if (!ReadPod(*pod).waiting()) continue;
    for (const PodClaim& claim : ReadPodClaims(*pod)) {
      parts_.server->Remove(ResourceType::kResourceClaims, ns, claim.claim, kTenantActor)
          .IgnoreError();
    }
  }
}

}  // namespace fairlead::sim::world
