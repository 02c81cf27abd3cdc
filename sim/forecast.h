// What becomes of a real cluster if it is left alone: its objects are taken over by a simulated
// cluster (Cluster::Adopt), and the decision loop goes on in virtual time until nothing changes.
//
// Victims leave and their controllers make them anew, bound pods start, requested nodes come after
// the expected boot time, empty nodes are removed. No pod ends by itself, none is added, no price
// changes, no write is refused but by a PodDisruptionBudget.
//
// Errors: those of Simulator. Thread-safety: pure function. Determinism: same input, same result.
// Complexity: that of the decisions, and one view per decision and per kLook.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "core/options.h"
#include "core/view.h"
#include "sim/drain.h"
#include "sim/manifests.h"
#include "sim/simulator.h"

namespace fairlead::sim {

struct ForecastInput {
  core::Options core;
  const hook::Catalog* catalog = nullptr;  // not null
  absl::Time now;
  Present present;
  Manifest applied;                  // at the beginning, as `kubectl apply` does
  std::vector<std::string> drained;  // nodes, cordoned in `present`
  // The longest time that is played.
  absl::Duration bound = absl::Hours(1);
};

struct Forecast {
  static constexpr absl::Duration kLook = absl::Seconds(10);

  core::View end;
  // Nothing changed for so long that none of the program's timers can be due any more. False: the
  // bound came first.
  bool settled = false;
  absl::Duration last_change = absl::ZeroDuration();  // after the beginning, rounded up to kLook
  struct Eviction {
    absl::Duration after;
    std::string pod, why;
  };
  std::vector<Eviction> evictions;  // by the scheduler, in their order
  struct Order {
    absl::Duration after;
    std::string request, instance_type, text;
  };
  std::vector<Order> orders, failures;  // of nodes: requested; refused by the simulated provider
  std::map<std::string, Drain::Outcome> drained;  // pods of the drained nodes
};

absl::StatusOr<Forecast> Foresee(ForecastInput input);

// After how long without a change nothing is expected any more: longer than a machine takes to
// boot, and than an empty node is kept.
absl::Duration QuietTime(const core::Options& options, const std::vector<Object>& objects);

}  // namespace fairlead::sim
