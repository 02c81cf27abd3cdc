#include "core/options.h"

#include "scheduler/model/api_names.h"

namespace fairlead::core {

Options DefaultOptions() {
  Options options;
  options.state.scheduler_names = {model::kDefaultSchedulerName, model::kKaiSchedulerName};
  options.state.place_gpu_shares = false;  // the reservation pods are not made yet
  return options;
}

}  // namespace fairlead::core
