#include "scheduler/plugins/gpu_kind.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

constexpr framework::Code kNever = framework::Code::kUnschedulableAndUnresolvable;

bool Never(framework::Status* why, absl::string_view reason) { return Refuse(why, kNever, reason); }

bool IsSingle(const model::Node& node) {
  return node.meta.labels.Get(model::kMigStrategyLabel) == "single";
}

bool HasMig(const model::Node& node) {
  return node.meta.labels.Get(model::kMigEnabledLabel) == "true" ||
         std::any_of(node.allocatable.begin(), node.allocatable.end(),
                     [](const auto& entry) { return state::IsMig(entry.first); });
}

bool ShareSuits(const framework::Context& context, const state::NodeInfo& node,
                framework::Status* why) {
  const model::GpuShare& share = context.pod_class.spec->gpu_share;
  if (!context.state.options().place_gpu_shares) {
    return Never(why,
                 "shares of a GPU are switched off (gpuSharing.enabled), and the pod asks for one");
  }
  const int64_t devices = node.allocatable[model::kGpu] / 1000;
  if (devices == 0) return Never(why, "node(s) have no GPU to share");
  if (IsSingle(node.object))
    return Never(why, "node(s) have only slices of GPUs (MIG), not shared");
  if (devices < share.devices) {
    if (why == nullptr) return false;
    return Never(
        why, absl::StrCat("node(s) have fewer than the ", share.devices, " shared GPUs requested"));
  }
  if (share.memory_mib == 0) return true;
  // Not what the state keeps: nodes that are only thought of have the object alone.
  const int64_t memory_mib = state::GpuMemoryOf(node.object);
  if (memory_mib == 0) {
    if (why == nullptr) return false;
    return Never(why, absl::StrCat("node(s) do not say how much memory a GPU has (label ",
                                   model::kGpuMemoryLabel, ")"));
  }
  if (share.memory_mib <= memory_mib) return true;
  if (why == nullptr) return false;
  return Never(
      why, absl::StrCat("node(s) have GPUs with less than ", share.memory_mib, " MiB of memory"));
}

}  // namespace

bool RequestsMig(const model::PodSpec& spec) {
  return std::any_of(spec.requests.begin(), spec.requests.end(), [](const auto& entry) {
    return entry.second > 0 && state::IsMig(entry.first);
  });
}

absl::StatusOr<std::unique_ptr<framework::Plugin>> GpuKind::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<GpuKind>();
}

bool GpuKind::FilterApplies(const state::PodClass& pod_class) const {
  const model::PodSpec& spec = *pod_class.spec;
  return spec.gpu_share.IsSet() || !spec.legacy_mig.empty() || RequestsMig(spec);
}

std::string GpuKind::RefusesEverywhere(const state::PodClass& pod_class) const {
  if (pod_class.spec->legacy_mig.empty()) return "";
  return "metadata.annotations: MIG by annotation is not placed any more: request "
         "nvidia.com/mig-* of a container instead";
}

bool GpuKind::Filter(const framework::Context& context, const state::NodeInfo& node,
                     framework::Status* why) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  if (!spec.legacy_mig.empty()) {
    return Never(why,
                 "asks for MIG by annotation, which is not placed any more: request it instead");
  }
  if (RequestsMig(spec)) {
    if (!HasMig(node.object)) return Never(why, "MIG job cannot be scheduled on non-MIG node");
    if (IsSingle(node.object)) {
      return Never(why, "node(s) offer MIG as plain GPUs (strategy single), not by profile");
    }
  }
  if (spec.gpu_share.IsSet() && (node.gpus_by_claim || node.allocatable[model::kGpu] == 0) &&
      context.state.devices().inventory().CountGpus(node.name()) > 0) {
    return Never(why, "fractional/shared GPU pods are not yet supported on DRA-only nodes");
  }
  return !spec.gpu_share.IsSet() || ShareSuits(context, node, why);
}

}  // namespace fairlead::plugins
