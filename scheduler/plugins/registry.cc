#include "scheduler/plugins/registry.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "scheduler/framework/known_plugins.h"
#include "scheduler/plugins/dynamic_resources.h"
#include "scheduler/plugins/extender.h"
#include "scheduler/plugins/gpu_fragmentation.h"
#include "scheduler/plugins/gpu_kind.h"
#include "scheduler/plugins/gpu_sharing.h"
#include "scheduler/plugins/image_locality.h"
#include "scheduler/plugins/instance_wishes.h"
#include "scheduler/plugins/inter_pod_affinity.h"
#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/node_declared_features.h"
#include "scheduler/plugins/node_name.h"
#include "scheduler/plugins/node_placement.h"
#include "scheduler/plugins/node_ports.h"
#include "scheduler/plugins/node_ready.h"
#include "scheduler/plugins/node_resources_balanced_allocation.h"
#include "scheduler/plugins/node_resources_fit.h"
#include "scheduler/plugins/node_unschedulable.h"
#include "scheduler/plugins/node_volume_limits.h"
#include "scheduler/plugins/numa.h"
#include "scheduler/plugins/pod_topology_spread.h"
#include "scheduler/plugins/resource_type.h"
#include "scheduler/plugins/taint_toleration.h"
#include "scheduler/plugins/volume_binding.h"
#include "scheduler/plugins/volume_restrictions.h"
#include "scheduler/plugins/volume_zone.h"

namespace fairlead::plugins {
namespace {

template <typename... Plugins>
absl::Status RegisterThem(framework::Registry& registry) {
  absl::Status status;
  // The first error stays.
  (status.Update(registry.Register(Plugins::kName, &Plugins::Make)), ...);
  return status;
}

}  // namespace

absl::Status RegisterAll(framework::Registry& registry) {
  return RegisterThem<DynamicResources, Extender, GpuFragmentation, GpuKind, GpuSharing,
                      ImageLocality, InstanceWishes, InterPodAffinity, NodeAffinity,
                      NodeDeclaredFeatures, NodeName, NodePlacement, NodePorts, NodeReady,
                      NodeResourcesBalancedAllocation, NodeResourcesFit, NodeUnschedulable,
                      NodeVolumeLimits, Numa, PodTopologySpread, ResourceType, TaintToleration,
                      VolumeBinding, VolumeRestrictions, VolumeZone>(registry);
}

framework::RegistryPtr BuiltIn() {
  static const framework::RegistryPtr all = [] {
    auto registry = std::make_shared<framework::Registry>();
    FAIRLEAD_CHECK(RegisterAll(*registry).ok(), "two plugins have one name");
    return registry;
  }();
  return all;
}

absl::StatusOr<framework::RegistryPtr> WithBuiltIn(const std::vector<framework::NamedPlugin>& own) {
  auto registry = std::make_shared<framework::Registry>();
  FAIRLEAD_RETURN_IF_ERROR(RegisterAll(*registry));
  for (const framework::NamedPlugin& plugin : own) {
    if (framework::FindKnownPlugin(plugin.name) != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat(
          "plugin ", plugin.name, ": kube-scheduler has a plugin of this name; choose another"));
    }
    FAIRLEAD_RETURN_IF_ERROR(registry->Register(plugin.name, plugin.make));
  }
  return registry;
}

}  // namespace fairlead::plugins
