#include "scheduler/plugins/node_placement.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

model::ResourceIndex MainResource(const framework::Context& context) {
  const state::PodClass& pod_class = context.pod_class;
  // A share prefers nodes by their whole GPUs, as KAI does; the fullest device is chosen later.
  if (pod_class.requests[model::kGpu] > 0 || pod_class.spec->gpu_share.IsSet()) return model::kGpu;
  if (pod_class.charge[model::kGpu] > 0) {
    // GPUs of another vendor are charged as GPUs.
    const auto amd = context.state.resource_names().Find(model::kAmdGpuName);
    if (amd.has_value() && pod_class.requests[*amd] > 0) return *amd;
  }
  return model::kCpu;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodePlacement::Make(
    absl::string_view args_json) {
  std::string gpu = "binpack";
  std::string cpu = "binpack";
  const std::vector<std::string> strategies = {"binpack", "spread"};
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(
      kName, args_json, {{"gpu", &gpu, 0, 0, strategies}, {"cpu", &cpu, 0, 0, strategies}}));
  return std::make_unique<NodePlacement>(gpu == "spread", cpu == "spread");
}

int64_t NodePlacement::Score(const framework::Context& context, const state::NodeInfo& node) const {
  const model::ResourceIndex resource = MainResource(context);
  const int64_t free = std::clamp<int64_t>(FreeAmount(node, framework::Capacity::kFuture, resource),
                                           0, kPlacementRange);
  if (!(resource == model::kCpu ? spread_cpu_ : spread_gpu_)) return kPlacementRange - free;
  const int64_t all = std::clamp<int64_t>(node.allocatable[resource], 1, kPlacementRange);
  return std::min(free, all) * kPlacementRange / all;
}

}  // namespace fairlead::plugins
