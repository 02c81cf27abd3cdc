// Of Tenants: storage classes, volumes, and claims of pods.
#include <set>
#include <utility>

#include "sim/world/facts.h"
#include "sim/world/tenants.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
bool Tenants::DoVolumes(const Operation& operation) {
  const std::string& verb = operation.verb;
  ApiServer& server = *parts_.server;
  if (verb == "storage-class") {
    server.Create(ResourceType::kStorageClasses, MakeStorageClass(operation), kTenantActor)
        .IgnoreError();
  } else if (verb == "volume") {
    server.Create(ResourceType::kPersistentVolumes, MakeLocalVolume(operation), kTenantActor)
        .IgnoreError();
  } else if (verb == "csi-node") {
    const std::string name = operation.Text("name");
    server.Remove(ResourceType::kCsiNodes, "", name, kTenantActor).IgnoreError();
    server
        .Create(ResourceType::kCsiNodes, MakeCsiNode(name, operation.Number("count")), kTenantActor)
        .IgnoreError();
  } else if (verb == "provisioner") {
    if (!operation.Text("refuse_one_in").empty()) {
      parts_.provisioner->RefuseOneIn(operation.Number("refuse_one_in"));
    }
    if (!operation.Text("how").empty()) {
      parts_.provisioner->Misbehave(operation.Text("how"), Until(operation));
    }
  } else if (verb == "delete-volume-claims" || verb == "delete-volumes") {
    DeleteVolumes(operation);
  } else {
    return false;
  }
  return true;
}

void Tenants::DeleteVolumes(const Operation& operation) {
  ApiServer& server = *parts_.server;
  std::set<std::pair<std::string, std::string>> claims;
  for (const auto& [ns, name] : PodsOf(operation)) {
    const Json* const pod = server.Find(ResourceType::kPods, ns, name);
    for (const PodVolume& volume : ReadPodVolumes(*pod)) claims.emplace(ns, volume.claim);
  }
  for (const auto& [ns, name] : claims) {
    if (operation.verb == "delete-volume-claims") {
      server.Remove(ResourceType::kPersistentVolumeClaims, ns, name, kTenantActor).IgnoreError();
      continue;
    }
    const Json* const claim = server.Find(ResourceType::kPersistentVolumeClaims, ns, name);
    const std::string volume = claim == nullptr ? "" : ReadVolumeClaim(*claim).volume;
    if (volume.empty()) continue;
    (operation.Number("force") != 0
         ? server.RemoveNow(ResourceType::kPersistentVolumes, "", volume, kTenantActor)
         : server.Remove(ResourceType::kPersistentVolumes, "", volume, kTenantActor))
        .IgnoreError();
  }
}

}  // namespace fairlead::sim::world
