#include "scheduler/plugins/gpu_sharing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/gpu_kind.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using state::GpuCapacity;

GpuCapacity ToGpuCapacity(Capacity capacity) {
  switch (capacity) {
    case Capacity::kNow:
      return GpuCapacity::kNow;
    case Capacity::kFuture:
      return GpuCapacity::kFuture;
    case Capacity::kEmpty:
      return GpuCapacity::kEmpty;
  }
  return GpuCapacity::kNow;
}

// "Insufficient shared GPU: requested 0.5 GPU", equal for every node.
std::string Asked(const model::GpuShare& share) {
  std::string text = "Insufficient shared GPU: requested ";
  if (share.memory_mib > 0) {
    absl::StrAppend(&text, share.memory_mib, " MiB");
    return share.devices == 1 ? text + " of GPU memory"
                              : absl::StrCat(text, " of each of ", share.devices, " GPUs");
  }
  absl::StrAppend(&text, model::FormatAmount(model::kGpuName, share.fraction_milli));
  return share.devices == 1 ? text + " GPU"
                            : absl::StrCat(text, " of each of ", share.devices, " GPUs");
}

bool LegacyMigRuns(const framework::Context& context, const state::NodeInfo& node) {
  return std::any_of(node.pods.begin(), node.pods.end(), [&](state::PodId id) {
    return InTheWay(context.state.pod(id), context.capacity) &&
           !context.state.class_of(id).spec->legacy_mig.empty();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> GpuSharing::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<GpuSharing>();
}

bool GpuSharing::FilterApplies(const state::PodClass& pod_class) const {
  return pod_class.spec->gpu_share.IsSet() || RequestsMig(*pod_class.spec);
}

bool GpuSharing::Filter(const framework::Context& context, const state::NodeInfo& node,
                        framework::Status* why) const {
  const model::GpuShare& share = context.pod_class.spec->gpu_share;
  if (!share.IsSet()) {
    if (!LegacyMigRuns(context, node)) return true;
    return Refuse(why, Code::kUnschedulable, "node(s) run pods that hold MIG by annotation");
  }
  const GpuCapacity capacity = ToGpuCapacity(context.capacity);
  const int64_t devices = state::DevicesThatFit(node, context.pod_class, capacity);
  if (devices < share.devices) {
    if (why == nullptr) return false;
    const bool ever = state::FitsGpus(node, context.pod_class, GpuCapacity::kEmpty);
    Refuse(why, ever ? Code::kUnschedulable : Code::kUnschedulableAndUnresolvable, Asked(share));
    model::GpuShare lacking = share;
    lacking.devices = share.devices - devices;
    why->missing.push_back({model::kGpu, state::ShareMilli(lacking, node.gpu_memory_mib)});
    return false;
  }
  const int64_t slots =
      model::SaturatingAdd(context.pod_class.requests[model::kPods],
                           state::NewGroupsNeeded(node, context.pod_class, capacity));
  const int64_t free = FreeAmount(node, context.capacity, model::kPods);
  if (slots <= free) return true;
  if (why == nullptr) return false;
  Refuse(why,
         slots <= node.allocatable[model::kPods] ? Code::kUnschedulable
                                                 : Code::kUnschedulableAndUnresolvable,
         "Too many pods (a GPU that becomes shared needs a slot for its reservation pod)");
  why->missing.push_back({model::kPods, slots - free});
  return false;
}

int64_t GpuSharing::Score(const framework::Context& context, const state::NodeInfo& node) const {
  return state::JoinsSharedGpu(node, context.pod_class) ? 1 : 0;
}

}  // namespace fairlead::plugins
