// One world from one plan: API server, actors, two replicas of the program, and the checks.
//
// Time moves to the next event or the next wish of a replica; then the replicas that are due have
// one turn of their loop. At the plan's end all faults end, and the world is watched for
// kSettleTime more.
//
// Verbs of plans that are carried out here, and their fields; the rest by sim::world::Tenants.
// `for_ms`: how long.
//
// Of a replica (`replica`: a | b | leader | standby):
//   network      lose_request lose_answer throttle server_error gateway_timeout conflict (1/1000)
//                max_delay_ms max_watch_delay_ms for_ms
//   refuse       method prefix suffix status for_ms
//   answer       write (WriteKindOf; none: all but the lease's) status (0: no answer) chance served
//                retry_after_ms for_ms: answers to writes that are not the server's
//   half-open    class (read | watch | write) for_ms
//   blind        prefix status for_ms: it hears nothing of these objects
//   partition    for_ms
//   goaway       calls: calls that are under way fail too
//   pause        for_ms: all of it stands still
//   hang         for_ms: its deciding thread stands still
//   clock        offset_ms
//   crash        down_ms at_write: after so many writes
//   crash-at     write ("launch", "terminate": a call of the cloud) when (before | after) count
//                down_ms
//   stop         down_ms: SIGTERM
//
// Of the API server: compact, end-watches, delete-lease.
//
// Of both replicas:
//   settings     configuration catalogue signal (1: by SIGHUP): files change (settings_files.h)
//   catalogue, old-machine   the replicas are started again with another catalogue
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
  int64_t recount_every = 1;      // decisions
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
