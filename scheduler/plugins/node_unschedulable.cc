#include "scheduler/plugins/node_unschedulable.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeUnschedulable::Make(
    absl::string_view args_json) {
  bool honor = false;
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {{"honorToleration", &honor}}));
  return std::make_unique<NodeUnschedulable>(honor);
}

bool NodeUnschedulable::Filter(const framework::Context& context, const state::NodeInfo& node,
                               framework::Status* why) const {
  if (!node.object.unschedulable) return true;
  if (honor_toleration_) {
    static const auto& taint =
        *new model::Taint{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule};
    const auto& tolerations = context.pod_class.spec->tolerations;
    if (std::any_of(tolerations.begin(), tolerations.end(),
                    [](const model::Toleration& t) { return t.Tolerates(taint); })) {
      return true;
    }
  }
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable, "node(s) were unschedulable");
}

}  // namespace fairlead::plugins
