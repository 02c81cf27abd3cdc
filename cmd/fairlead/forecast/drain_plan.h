// What would become of the pods of some nodes if these were drained now: `fairlead drain-plan`. The
// question of a what-if (what_if.h) in which the nodes are cordoned and emptied (sim/drain.h).
//
// The JSON (docs/commands.md has an example; names stay, new ones may come):
//  {"kind":"DrainPlan","at","nodes":[],"bound","settled","lastChange",
//   "pods":[{"pod","node","fate","to","ordered","code","message"}],
//   "workloads":[{as in WhatIfJson}],"evictions":[{as in WhatIfJson}],  // of others than the pods
//   "nodesRequested":[{"instanceType","after"}],
//   "provisioned":[{"instanceType","capacityType","before":{"count","pricePerHourUSD"},"after"}],
//   "pricePerHourUSD":{"before","after"}}
// `fate` is one of
//   "placed"          on node `to`; `ordered`: it has to be requested first
//   "waits"           with `code`
//   "refused"         a PodDisruptionBudget does not let it go; it stays
//   "kept"            an annotation keeps it (model::MustStay); it stays, and a drain by hand would
//                     evict it
//   "belongsToNode"   a DaemonSet's, or a static pod; it stays
//   "ends"            no controller owns it: it is gone for good
//   "otherScheduler"  it goes, and another scheduler says where to
//   "ending"          it is being deleted already
//
// Thread-safety: as the transport; the rest are pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/forecast/what_if.h"
#include "document/json.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

struct PodFate {
  enum class Kind : uint8_t {
    kPlaced,
    kWaits,
    kRefused,
    kKept,
    kBelongsToNode,
    kEnds,
    kOtherScheduler,
    kEnding,
  };
  Kind kind = Kind::kEnding;
  std::string pod, node, workload;
  std::string to;             // kPlaced
  bool ordered = false;       // kPlaced: on a node that does not exist yet
  std::string code, message;  // kWaits; kRefused: message
};

struct DrainPlan {
  std::vector<std::string> nodes;  // by name
  std::vector<PodFate> pods;       // by node, then pod
  WhatIf what_if;                  // without and with the drain
};

struct DrainQuestion {
  std::vector<std::string> nodes;      // at least one
  const Settings* settings = nullptr;  // not null
  absl::Duration bound = absl::Hours(1);
};

// Sends GET requests only. NotFound for a node that does not exist. Else the errors of AskWhatIf.
absl::StatusOr<DrainPlan> AskDrainPlan(kube::HttpTransport& transport,
                                       const DrainQuestion& question, absl::Time now,
                                       const FetchUsage& fetch_usage = nullptr);

Json DrainPlanJson(const DrainPlan& plan);
std::string DrainPlanText(const DrainPlan& plan);

}  // namespace fairlead::cmd
