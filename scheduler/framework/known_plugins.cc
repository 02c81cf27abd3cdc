#include "scheduler/framework/known_plugins.h"

#include <algorithm>
#include <iterator>

namespace fairlead::framework {
namespace {

using enum Point;

constexpr KnownPlugin kKnown[] = {
    {"SchedulingGates", {kPreEnqueue}, Support::kBuiltIn},
    {"PrioritySort", {kQueueSort}, Support::kBuiltIn},
    {"NodeUnschedulable", {kFilter}, Support::kPlugin},
    {"NodeName", {kFilter}, Support::kPlugin},
    {"TaintToleration", {kFilter, kPreScore, kScore}, Support::kPlugin},
    {"NodeAffinity", {kPreFilter, kFilter, kPreScore, kScore}, Support::kPlugin},
    {"NodePorts", {kPreFilter, kFilter}, Support::kPlugin},
    {"NodeResourcesFit", {kPreFilter, kFilter, kPreScore, kScore}, Support::kPlugin},
    {"VolumeRestrictions", {kPreFilter, kFilter}, Support::kPlugin},
    {"NodeVolumeLimits", {kPreFilter, kFilter}, Support::kPlugin},
    {"VolumeBinding",
     {kPreFilter, kFilter, kPreScore, kScore, kReserve, kPreBind},
     Support::kPlugin},
    {"VolumeZone", {kPreFilter, kFilter}, Support::kPlugin},
    {"PodTopologySpread", {kPreFilter, kFilter, kPreScore, kScore}, Support::kPlugin},
    {"InterPodAffinity", {kPreFilter, kFilter, kPreScore, kScore}, Support::kPlugin},
    {"DynamicResources",
     {kPreEnqueue, kPreFilter, kFilter, kPostFilter, kScore, kReserve, kPreBind},
     Support::kPlugin},
    {"DefaultPreemption", {kPreEnqueue, kPostFilter}, Support::kBuiltIn},
    {"NodeResourcesBalancedAllocation", {kPreScore, kScore}, Support::kPlugin},
    {"ImageLocality", {kScore}, Support::kPlugin},
    {"DefaultBinder", {kBind}, Support::kBuiltIn},
    {"NodeDeclaredFeatures", {kPreFilter, kFilter}, Support::kPlugin},
    {"GangScheduling", {kPreEnqueue, kReserve, kPermit}, Support::kBuiltIn},
    {"TopologyPlacementGenerator", {}, Support::kLacking},
    {"PodGroupPodsCount", {}, Support::kLacking},
};

// Of plugins that kube-scheduler does not have. What upstream prepares in PreFilter and PreScore is
// part of their Filter and Score: a list may name them there.
constexpr PointSet kOwnPoints = {kPreEnqueue, kQueueSort, kPreFilter, kFilter,
                                 kPostFilter, kPreScore,  kScore,     kReserve,
                                 kPermit,     kPreBind,   kBind,      kPostBind};

}  // namespace

const KnownPlugin* FindKnownPlugin(absl::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kKnown), std::end(kKnown),
      [name](const KnownPlugin& plugin) { return absl::string_view(plugin.name) == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

std::vector<std::string> BuiltInPluginNames() {
  std::vector<std::string> names;
  for (const KnownPlugin& plugin : kKnown) {
    if (plugin.support == Support::kBuiltIn) names.emplace_back(plugin.name);
  }
  return names;
}

bool Extends(absl::string_view name, Point point) {
  const KnownPlugin* const known = FindKnownPlugin(name);
  return known != nullptr ? known->points.Has(point) : kOwnPoints.Has(point);
}

}  // namespace fairlead::framework
