#include "scheduler/plugins/node_ready.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

using framework::Code;

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeReady::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodeReady>();
}

bool NodeReady::Filter(const framework::Context& context, const state::NodeInfo& node,
                       framework::Status* why) const {
  constexpr Code kNo = Code::kUnschedulableAndUnresolvable;
  if (!node.exists) return Refuse(why, kNo, "node(s) were not known to the API server");
  if (!node.object.invalid.empty()) {
    return Refuse(why, kNo, "node(s) had an object that could not be understood");
  }
  if (!IsPlace(node, context.capacity)) {
    return Refuse(why, kNo, "node(s) were requested and not ready for use yet");
  }
  if (!node.object.ready) return Refuse(why, kNo, "node(s) were not ready");
  if (!node.object.bad_conditions.empty()) {
    // The text is made only where it is read.
    return why == nullptr
               ? false
               : Refuse(why, kNo,
                        absl::StrCat("node(s) had condition ", node.object.bad_conditions.front()));
  }
  return true;
}

}  // namespace fairlead::plugins
