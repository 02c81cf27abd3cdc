// One world from one plan: API server, actors, two replicas of the program, and the checks.
//
// Time moves to the next event or the next wish of a replica; then the replicas that are due have
// one turn of their loop. At the plan's end all faults end, and the world is watched for
// kSettleTime more.
//
// Verbs of plans that are carried out here, the rest by sim::world::Tenants (`replica`: a | b |
// leader; `for_ms`: how long):
//   network    lose_request lose_answer throttle server_error gateway_timeout conflict (1/1000)
//              max_delay_ms max_watch_delay_ms for_ms
//   refuse     prefix suffix status for_ms      half-open  class (read | watch | write) for_ms
//   answer     write (WriteKindOf; without: all but the lease's) status (0: none) chance served
//              retry_after_ms for_ms             answers to writes that are not the server's
//   crash-at   write ("launch", "terminate": a call of the cloud) when (before | after) count
//   down_ms stop       down_ms                          SIGTERM settings   configuration catalogue
//   signal   files change (settings_files.h); SIGHUP goaway     [calls: and calls]  partition
//   for_ms                 pause for_ms clock      offset_ms                        crash down_ms
//   [at_write: after so many writes] compact    end-watches delete-lease         (of the API
//   server) catalogue                                   another one is rolled out hang blind prefix
//   status                   its deciding thread stands still; it hears nothing
//
// Thread-safety: none, one thread. Determinism: same plan, same trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cmd/simtest/checks.h"
#include "sim/world/plan.h"

namespace fairlead::simtest {

inline constexpr absl::Duration kSettleTime = absl::Minutes(5);

struct RunOptions {
  std::set<std::string> without;  // invariants that are not checked
  int64_t recount_every = 16;     // decisions
  // Gets every commit, operation and log line; null: none.
  std::function<void(absl::string_view line)> trace;
};

struct RunResult {
  std::optional<Failure> failure;
  int64_t steps = 0;      // turns of replicas
  int64_t lifetimes = 0;  // pods that were bound and have ended
  int64_t commits = 0, writes = 0;
  absl::Duration virtual_time;
  uint64_t trace_hash = 0;  // over every commit
};

RunResult RunPlan(const sim::world::Plan& plan, const RunOptions& options);

}  // namespace fairlead::simtest
