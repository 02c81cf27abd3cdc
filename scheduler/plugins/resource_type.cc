#include "scheduler/plugins/resource_type.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

bool HasGpus(const state::NodeInfo& node) {
  return node.allocatable[model::kGpu] > 0 || node.other_gpus_milli > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> ResourceType::Make(absl::string_view args_json) {
  bool keep_off = false;
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {{"keepOffGpuNodes", &keep_off}}));
  return std::make_unique<ResourceType>(keep_off);
}

bool ResourceType::Filter(const framework::Context&, const state::NodeInfo& node,
                          framework::Status* why) const {
  if (!HasGpus(node)) return true;
  return Refuse(why, framework::Code::kUnschedulable,
                "node(s) have GPUs, which are kept for pods that ask for them");
}

int64_t ResourceType::Score(const framework::Context&, const state::NodeInfo& node) const {
  return HasGpus(node) ? 0 : 1;
}

}  // namespace fairlead::plugins
