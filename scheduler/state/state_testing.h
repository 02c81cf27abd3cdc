// What the tests of the state share. Header only; never part of the product.
#pragma once

#include "scheduler/state/cluster_state.h"

namespace fairlead::state::testing {

// The options of a state to which pods of scheduler "fairlead" belong.
inline StateOptions OurPods() {
  StateOptions options;
  options.scheduler_names = {"fairlead"};
  return options;
}

}  // namespace fairlead::state::testing
