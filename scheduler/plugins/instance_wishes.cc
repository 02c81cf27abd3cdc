#include "scheduler/plugins/instance_wishes.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> InstanceWishes::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<InstanceWishes>();
}

bool InstanceWishes::Filter(const framework::Context& context, const state::NodeInfo& node,
                            framework::Status* why) const {
  const int64_t gpus_milli =
      model::SaturatingAdd(node.allocatable[model::kGpu], node.other_gpus_milli);
  const absl::string_view unmet = model::UnmetWish(
      *context.pod_class.spec->wishes, node.object.meta.labels, (gpus_milli + 999) / 1000);
  if (unmet.empty()) return true;
  if (why == nullptr) return false;
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                absl::StrCat("node(s) didn't match Pod's ", unmet));
}

}  // namespace fairlead::plugins
