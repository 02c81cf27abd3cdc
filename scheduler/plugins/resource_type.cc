#include "scheduler/plugins/resource_type.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> ResourceType::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<ResourceType>();
}

int64_t ResourceType::Score(const framework::Context&, const state::NodeInfo& node) const {
  return node.allocatable[model::kGpu] > 0 || node.other_gpus_milli > 0 ? 0 : kResourceTypeStep;
}

}  // namespace fairlead::plugins
