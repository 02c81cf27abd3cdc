// What would happen to the present cluster if it were changed: `fairlead what-if`. The cluster is
// read once; two forecasts (sim/forecast.h) begin with the same objects at the same time, one
// without the change and one with it, and their ends are compared.
//
// The JSON (docs/commands.md has an example; names stay, new ones may come):
//  {"kind":"WhatIf","at","changes":[],"bound","differs",
//   "without":{"settled","lastChange","pricePerHourUSD","gpusHeld","evictions","nodesRequested"},
//   "with":{the same},
//   "queues":[{"name","without":{as in QueuesJson, or null},"with":{..}}],     // that differ
//   "workloads":[{"name","queue","without":{"placed","waiting","code","message"} or null,
//                 "with":{..}}],                                               // that differ
//   "evictions":[{"pod","after","why","in":"with"|"without"}],                 // of one of them
//   "nodes":[{"instanceType","capacityType","without":{"count","pricePerHourUSD"},"with":{..}}]}
// Times after the beginning are Go durations ("3m20s"). `nodes` are the hook's, by type, whether or
// not they differ.
//
// Thread-safety: as the transport; the rest are pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/forecast/change.h"
#include "cmd/fairlead/forecast/forecast_parts.h"
#include "cmd/fairlead/inspect/snapshot.h"
#include "cmd/fairlead/settings/config_file.h"
#include "document/json.h"
#include "kube/transport/http.h"
#include "sim/forecast.h"

namespace fairlead::cmd {

struct WhatIfQuestion {
  Change change;
  const Settings* settings = nullptr;       // of the present; not null
  const Settings* with_settings = nullptr;  // of the change; null: the same
  absl::Duration bound = absl::Hours(1);
};

struct WhatIf {
  absl::Time at;
  absl::Duration bound;
  std::vector<std::string> changes;  // "replaces Queue research"
  sim::Forecast without, with;
  std::vector<std::string> missing_kinds, notes;  // as in Snapshot
};

// Sends GET requests only. Errors: those of TakeSnapshot, PlanChange and Foresee.
absl::StatusOr<WhatIf> AskWhatIf(kube::HttpTransport& transport, const WhatIfQuestion& question,
                                 absl::Time now, const FetchUsage& fetch_usage = nullptr);

// The workloads that end otherwise, by name.
struct WorkloadChange {
  std::string name;
  std::optional<WorkloadState> without, with;
};
std::vector<WorkloadChange> WorkloadsThatDiffer(const WhatIf& answer);

// The evictions of one forecast that the other does not have. Valid as long as `answer`.
struct EvictionChange {
  const sim::Forecast::Eviction* eviction = nullptr;
  bool with = false;
};
std::vector<EvictionChange> EvictionsThatDiffer(const WhatIf& answer);

Json WhatIfJson(const WhatIf& answer);
std::string WhatIfText(const WhatIf& answer);

// ---- parts of it: fields and tables
Json WorkloadsJson(const std::vector<WorkloadChange>& changes);
Json EvictionsJson(const std::vector<EvictionChange>& changes);
// With the reasons of those that wait.
std::string WorkloadsTable(const std::vector<WorkloadChange>& changes);
// Empty without any.
std::string EvictionsTable(const std::vector<EvictionChange>& changes);

}  // namespace fairlead::cmd
