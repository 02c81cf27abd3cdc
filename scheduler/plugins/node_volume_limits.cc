#include "scheduler/plugins/node_volume_limits.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Context;

// Volumes of one driver that pods on a node attach, or will.
struct PodVolumes {
  int64_t own = 0;                                // each of one pod
  absl::flat_hash_set<absl::string_view> shared;  // by name
  absl::flat_hash_set<absl::string_view> there;   // of `shared`: another pod adds nothing by it
};

bool Attaches(const Context& context, const state::PodRecord& pod, absl::string_view driver) {
  const auto& attached = context.state.pod_class(pod.pod_class).spec->volume_needs->attached;
  return std::any_of(attached.begin(), attached.end(),
                     [&](const model::AttachedVolumeNeed& need) { return need.driver == driver; });
}

// Whether a volume that the pod uses needs no room for another one. A pod that only waits for its
// place attaches nothing yet. And it waits for the room of what leaves: a pod that shares a volume
// with that must not keep the volume there in its stead.
bool IsThere(const state::PodRecord& pod, framework::Capacity capacity, bool some_wait) {
  if (capacity != Capacity::kNow) return true;
  return state::HoldsNode(pod.status) && (!some_wait || state::IsAllocated(pod.status));
}

PodVolumes VolumesOfPods(const Context& context, const state::NodeInfo& node,
                         absl::string_view driver) {
  const bool some_wait =
      context.capacity == Capacity::kNow &&
      std::any_of(node.pods.begin(), node.pods.end(), [&](state::PodId id) {
        const state::PodRecord& pod = context.state.pod(id);
        return pod.status == state::PodStatus::kPipelined && Attaches(context, pod, driver);
      });
  PodVolumes volumes;
  for (const state::PodId id : node.pods) {
    const state::PodRecord& pod = context.state.pod(id);
    if (!InTheWay(pod, context.capacity)) continue;
    const bool there = IsThere(pod, context.capacity, some_wait);
    const model::PodSpec& spec = *context.state.pod_class(pod.pod_class).spec;
    for (const model::AttachedVolumeNeed& need : spec.volume_needs->attached) {
      if (need.driver != driver) continue;
      if (need.volume.empty()) {
        ++volumes.own;
        continue;
      }
      volumes.shared.insert(need.volume);
      if (there) volumes.there.insert(need.volume);
    }
  }
  return volumes;
}

// Does a pod that is counted on the node use the volume, or one that terminates there? Evicting a
// pod does not detach its volumes, so while it does not terminate they count.
bool IsOfPodOn(const Context& context, const state::NodeInfo& node,
               const model::PersistentVolume& volume) {
  if (!volume.claim.has_value()) return false;
  const state::VolumeClaimRow* claim =
      context.state.volumes().FindClaim(model::Key(volume.claim->ns, volume.claim->name));
  return claim != nullptr &&
         std::any_of(claim->users.begin(), claim->users.end(), [&](state::PodId id) {
           const state::PodRecord& pod = context.state.pod(id);
           return pod.node == node.id && (pod.terminating || InTheWay(pod, context.capacity));
         });
}

// `wanted`: what the class attaches by the driver.
bool FitsLimit(const Context& context, const state::NodeInfo& node,
               absl::Span<const model::AttachedVolumeNeed> wanted, int64_t limit) {
  const std::string& driver = wanted.front().driver;
  const PodVolumes of_pods = VolumesOfPods(context, node, driver);
  int64_t added = 0;                                      // to what stays attached
  int64_t counted = 0;                                    // of those, among `shared` already
  for (const model::AttachedVolumeNeed& need : wanted) {  // one of a pod's own has no name
    if (of_pods.there.contains(need.volume)) continue;
    ++added;
    if (of_pods.shared.contains(need.volume)) ++counted;
  }
  if (added == 0) return true;
  int64_t left = 0;
  const auto count_left = [&](const state::VolumeRow& volume) {
    if (!IsOfPodOn(context, node, volume.object)) ++left;
  };
  if (context.capacity != Capacity::kEmpty) {
    context.state.volumes().ForEachAttachment(node.name(), driver, count_left);
  }
  const auto shared = static_cast<int64_t>(of_pods.shared.size());
  return of_pods.own + shared + left + added - counted <= limit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeVolumeLimits::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodeVolumeLimits>();
}

bool NodeVolumeLimits::Filter(const Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  const model::VolumeNeeds& needs = *context.pod_class.spec->volume_needs;
  const std::string& fault = FaultOf(needs, kName);
  if (!fault.empty()) {
    return Refuse(why, framework::Code::kUnschedulableAndUnresolvable, fault);
  }
  absl::Span<const model::AttachedVolumeNeed> rest = needs.attached;  // by driver
  while (!rest.empty()) {
    const std::string& driver = rest.front().driver;
    const auto end = std::find_if(rest.begin(), rest.end(),
                                  [&](const auto& need) { return need.driver != driver; });
    const auto count = static_cast<size_t>(end - rest.begin());
    const std::optional<int64_t> limit = context.state.volumes().LimitOf(driver, node.name());
    if (limit.has_value() && !FitsLimit(context, node, rest.first(count), *limit)) {
      return Refuse(why, framework::Code::kUnschedulable, "node(s) exceed max volume count");
    }
    rest.remove_prefix(count);
  }
  return true;
}

}  // namespace fairlead::plugins
