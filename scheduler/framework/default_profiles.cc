#include "scheduler/framework/default_profiles.h"

#include "scheduler/model/api_names.h"

namespace fairlead::framework {
namespace {

ProfilePlugin Filters(const char* name, const char* args = "") {
  return {name, 1, args, /*filter=*/true, /*score=*/false};
}

}  // namespace

ProfileBase BaseOf(absl::string_view scheduler_name) {
  return scheduler_name == model::kDefaultSchedulerName ||
                 scheduler_name == model::kKaiSchedulerName
             ? ProfileBase::kFairlead
             : ProfileBase::kUpstream;
}

Profile DefaultProfile() { return DefaultProfile(ProfileBase::kFairlead); }

Profile DefaultProfile(ProfileBase base) {
  // First what no node can mend, so that it is what people read; then what a node is, then what is
  // on it, then what is elsewhere: from cheap to dear.
  Profile profile;
  profile.scheduler_name = model::kDefaultSchedulerName;
  if (base == ProfileBase::kFairlead) {
    // NodePlacement scores in the place of NodeResourcesFit.
    profile.plugins = {{"GpuKind"},
                       {"NodeReady"},
                       {"NodeUnschedulable"},
                       {"NodeDeclaredFeatures"},
                       {"InstanceWishes"},
                       {"NodeAffinity", 2},
                       {"TaintToleration", 3},
                       Filters("NodeResourcesFit"),
                       {"GpuSharing"},
                       {"DynamicResources"},
                       {"NodePorts"},
                       {"VolumeRestrictions"},
                       {"NodeVolumeLimits"},
                       {"VolumeBinding"},
                       {"VolumeZone"},
                       {"PodTopologySpread", 2},
                       {"InterPodAffinity", 2},
                       {"ResourceType"},
                       {"NodePlacement"}};
    return profile;
  }
  profile.idle_first = true;
  profile.priority_rules = state::PriorityRules::kKubernetes;
  profile.plugins = {Filters("GpuKind"),
                     Filters("NodeReady"),
                     Filters("NodeUnschedulable", R"({"honorToleration":true})"),
                     {"NodeName"},
                     {"InstanceWishes"},
                     {"TaintToleration", 3},
                     {"NodeAffinity", 2},
                     {"NodePorts"},
                     {"NodeResourcesFit"},
                     {"GpuSharing"},
                     {"VolumeRestrictions"},
                     {"NodeVolumeLimits"},
                     {"VolumeBinding"},
                     {"VolumeZone"},
                     {"PodTopologySpread", 2, R"({"defaultingType":"System"})"},
                     {"InterPodAffinity", 2},
                     {"DynamicResources", 2},
                     {"NodeResourcesBalancedAllocation"},
                     {"ImageLocality"},
                     {"NodeDeclaredFeatures"},
                     {"ResourceType"},
                     {"NodePlacement"}};
  return profile;
}

}  // namespace fairlead::framework
