// Forecasts (sim/forecast.h) of the present cluster: their input, and parts of what is shown of
// them, for `fairlead what-if` and `fairlead drain-plan`.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cmd/fairlead/inspect/snapshot.h"
#include "cmd/fairlead/settings/config_file.h"
#include "document/json.h"
#include "sim/forecast.h"

namespace fairlead::cmd {

inline constexpr size_t kMaxRows = 50;     // of a table of these; JSON has all
inline constexpr size_t kTextWidth = 100;  // of wrapped sentences

// A sentence for the rows of a table that are not shown; empty if all are.
std::string MoreText(size_t rows);

sim::ForecastInput InputFor(const Settings& settings, absl::Duration bound, absl::Time now);

// "2 -> 4", or the one value if they are equal.
std::string Pair(const std::string& before, const std::string& after);

// "1h", as --for has it. InvalidArgument unless it is a Go duration from 1 second to 24 hours.
absl::StatusOr<absl::Duration> ParseBound(const std::string& text);

// The present as a forecast takes it over.
sim::Present PresentOf(const ClusterObjects& objects);

// Where the pods of a workload are at the end of a forecast.
struct WorkloadState {
  std::string queue;
  int64_t placed = 0, waiting = 0;  // pods
  std::string code, message;        // if any waits
  friend bool operator==(const WorkloadState& a, const WorkloadState& b) {
    return a.placed == b.placed && a.waiting == b.waiting && a.code == b.code;
  }
};
std::map<std::string, WorkloadState> WorkloadsOf(const core::View& view);  // by "namespace/name"
// "2 placed, 1 waits: QueueLimitReached"; "-" for none.
std::string StateText(const std::optional<WorkloadState>& state);

// The hook's nodes by type and capacity type, in both views: a table, and JSON.
std::string NodesCompared(const core::View& before, const core::View& after,
                          const std::string& before_title, const std::string& after_title);
Json NodesComparedJson(const core::View& before, const core::View& after, const char* before_key,
                       const char* after_key);

// "3m20s"; and one sentence if the bound was met.
std::string AfterText(absl::Duration duration);
std::string BoundText(const sim::Forecast& forecast, absl::Duration bound, absl::string_view which);

}  // namespace fairlead::cmd
