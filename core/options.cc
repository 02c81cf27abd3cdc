#include "core/options.h"

#include "scheduler/model/api_names.h"

namespace fairlead::core {

Options KwokOptions() {
  Options options;
  options.state.scheduler_names = {model::kDefaultSchedulerName, model::kKaiSchedulerName};
  options.hook.enabled = true;
  options.hook.provider = "kwok";
  return options;
}

}  // namespace fairlead::core
