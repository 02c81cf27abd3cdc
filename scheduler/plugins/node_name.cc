#include "scheduler/plugins/node_name.h"

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeName::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<NodeName>();
}

}  // namespace fairlead::plugins
