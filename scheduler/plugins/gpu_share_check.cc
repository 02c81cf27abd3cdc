#include "scheduler/plugins/gpu_share_check.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> GpuShareCheck::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<GpuShareCheck>();
}

bool GpuShareCheck::Filter(const framework::Context&, const state::NodeInfo&,
                           framework::Status* why) const {
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "needs a share of a GPU, which this version does not place yet");
}

}  // namespace fairlead::plugins
