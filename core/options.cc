#include "core/options.h"

#include <algorithm>

#include "scheduler/model/api_names.h"
#include "scheduler/plugins/numa.h"

namespace fairlead::core {

bool Reads(const Options& options, model::Kind kind) {
  const std::vector<framework::ProfilePlugin>& plugins = options.profile.plugins;
  return kind != model::Kind::kNodeResourceTopology ||
         std::any_of(plugins.begin(), plugins.end(),
                     [](const auto& entry) { return entry.name == plugins::Numa::kName; });
}

Options KwokOptions() {
  Options options;
  options.state.scheduler_names = {model::kDefaultSchedulerName, model::kKaiSchedulerName};
  options.hook.enabled = true;
  options.hook.provider = "kwok";
  return options;
}

}  // namespace fairlead::core
