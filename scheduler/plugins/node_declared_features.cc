#include "scheduler/plugins/node_declared_features.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeDeclaredFeatures::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodeDeclaredFeatures>();
}

bool NodeDeclaredFeatures::Filter(const framework::Context& context, const state::NodeInfo& node,
                                  framework::Status* why) const {
  const model::NodeFeatures required = context.pod_class.spec->required_features;
  if ((required & ~node.object.declared_features) == 0) return true;
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "node(s) didn't match Pod's required features");
}

}  // namespace fairlead::plugins
