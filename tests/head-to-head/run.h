// One scenario on one side: submits it, looks at pods and nodes every kLook until nothing moves any
// more, and counts.
//
// A node costs its type's price from the look that shows it first to the last one, so a figure in
// dollars is exact to kLook of each node. Thread-safety: one thread.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "tests/head-to-head/scenario.h"
#include "tests/head-to-head/side.h"

namespace fairlead::head_to_head {

inline constexpr absl::Duration kLook = absl::Milliseconds(250);

struct Figures {
  int nodes = 0;              // that were there at any time
  int nodes_without_pod = 0;  // of them, those that no pod was ever on
  int ran = 0;                // pods
  absl::Duration all_ran;     // until the last of them ran; infinite: not all that may
  int nodes_left = 0;         // at the end, when all pods have ended for a while
  double usd = 0;
  std::map<std::string, int> types;           // nodes of each
  std::map<std::string, double> cpu_seconds;  // of each program, until the end
};

Figures RunScenario(Side& side, const Scenario& scenario);

}  // namespace fairlead::head_to_head
