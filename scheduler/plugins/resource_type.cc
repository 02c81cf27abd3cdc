#include "scheduler/plugins/resource_type.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> ResourceType::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<ResourceType>();
}

int64_t ResourceType::Score(const framework::Context& context, const state::NodeInfo& node) const {
  if (node.allocatable[model::kGpu] > 0) return 0;
  // Most nodes have nothing that needs to be looked up by name.
  if (node.allocatable.size() <= model::kWellKnownResources) return kResourceTypeStep;
  const auto amd = context.state.resource_names().Find(model::kAmdGpuName);
  return amd.has_value() && node.allocatable[*amd] > 0 ? 0 : kResourceTypeStep;
}

}  // namespace fairlead::plugins
