// One scenario on one side: submits it, looks at pods and nodes every kLook until nothing moves any
// more, and counts.
//
// A node costs its type's price from the look that shows it first to the last one, so a figure in
// dollars is exact to kLook of each node. Thread-safety: one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/head-to-head/scenario.h"
#include "tests/head-to-head/side.h"

namespace fairlead::head_to_head {

inline constexpr absl::Duration kLook = absl::Milliseconds(250);

struct Figures {
  int nodes = 0;              // that were there at any time
  int nodes_without_pod = 0;  // of them, those that no pod was ever on
  int ran = 0, ended = 0;     // pods
  // Until the last pod first ran, and until it ended; infinite: not all that may.
  absl::Duration all_ran = absl::InfiniteDuration(), all_ended = absl::InfiniteDuration();
  int evictions = 0;  // of pods; each is submitted again
  // By job, from its submission: the mean over its pods until each ran, of a gang until the last
  // one ran. Infinite: not all ran.
  std::vector<absl::Duration> waits;
  int nodes_left = 0;  // at the end, when all pods have ended for a while
  double usd = 0;
  std::vector<std::string> not_ended;         // pods, with their phase, node and verdict
  std::map<std::string, int> types;           // nodes of each
  std::map<std::string, double> cpu_seconds;  // of each program, until the end
};

Figures RunScenario(Side& side, const Scenario& scenario);

}  // namespace fairlead::head_to_head
