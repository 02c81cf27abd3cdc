#include "core/share_plugin.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::core {
namespace {

bool HasSharers(const state::ClusterState& state, const std::string& node,
                const std::string& group) {
  const state::NodeId id = state.FindNode(node);
  if (id == state::kNoId || !state.node(id).exists) return false;
  const std::vector<state::GpuGroup>& groups = state.node(id).gpu_groups;
  const auto found =
      std::lower_bound(groups.begin(), groups.end(), group,
                       [](const state::GpuGroup& g, const std::string& key) { return g.id < key; });
  return found != groups.end() && found->id == group && found->active + found->releasing > 0;
}

// Per device, in KAI's format: "0.50".
std::string Portion(const model::GpuShare& share, int64_t gpu_memory_mib) {
  const int64_t milli = state::ShareMilli(share, gpu_memory_mib) / share.devices;
  return absl::StrFormat("%.2f", static_cast<double>(milli) / 1000);
}

// The uid of a pod that the watch has not shown yet.
constexpr char kAssumed[] = "assumed";

model::Pod AssumedReservation(const GpuReservations::Coming& coming) {
  model::Pod pod;
  pod.meta.ns = coming.ns;
  pod.meta.name = coming.name;
  pod.meta.uid = kAssumed;
  pod.meta.labels = {{model::kGpuGroupLabel, coming.group}};
  pod.node_name = coming.node;
  model::Set(pod.spec.requests, model::kGpuName, 1000);
  return pod;
}

}  // namespace

absl::Status SharePlugin::Reserve(const state::PodRecord& pod, model::BindPod bind) {
  if (state_.IsGuest(pod)) {
    // Which device it gets is said in its binding.
    return absl::FailedPreconditionError(
        absl::StrCat("a share of a GPU is given to pods that Fairlead binds: scheduler ",
                     state_.SchedulerNameOf(pod), " is a guest; set schedulerName to ",
                     model::kDefaultSchedulerName));
  }
  const model::GpuShare& share = state_.pod_class(pod.pod_class).spec->gpu_share;
  shares_.Hold(std::move(bind), pod.gpu_groups,
               Portion(share, state_.node(pod.node).gpu_memory_mib));
  return absl::OkStatus();
}

void SharePlugin::Unreserve(const std::string& ns, const std::string& name) {
  shares_.Drop(ns, name);
}

BindingPlugin::Progress SharePlugin::Advance(absl::Time now) {
  GpuReservations::Outcome due =
      shares_.Step(now, [this](const std::string& node, const std::string& group) {
        return HasSharers(state_, node, group);
      });
  for (const GpuReservations::Closing& closing : due.closings) {
    if (state_.CloseGpuGroup(closing.node, closing.group, closing.closed).Any()) changes_ = true;
  }
  for (const GpuReservations::Coming& pod : due.coming) {
    const state::Change change = pod.comes ? state_.UpsertPod(AssumedReservation(pod))
                                           : state_.RemovePod(pod.ns, pod.name, kAssumed);
    if (change.Any()) changes_ = true;
  }
  if (!emit_events_) {
    std::erase_if(due.actions, [](const model::Action& action) {
      return std::holds_alternative<model::EmitEvent>(action.what);
    });
  }
  return {std::move(due.actions), std::move(due.bindings), std::move(due.failed)};
}

}  // namespace fairlead::core
