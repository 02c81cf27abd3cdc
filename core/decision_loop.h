// The whole program minus sockets: events in, actions out. `fairlead run`, the simulator, the
// replayer, the benchmarks and the property tests all drive this one class.
//
//   while (true) { loop.Apply(event)...; Execute(loop.Step(now).actions); wait until wake_at or
//   event }
//
// A Step costs nothing when nothing changed since the last one and no timer is due.
//
// Ownership: owns the state, the tree, the engine and the hook. Thread-safety: none, one thread.
// Determinism: the same events and the same times give the same actions, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog.h"
#include "core/options.h"
#include "core/view.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/kind.h"

namespace fairlead::core {

struct StepResult {
  std::vector<model::Action> actions;
  // Call Step again at this time even without an event; infinite future: only events matter.
  absl::Time wake_at = absl::InfiniteFuture();
  bool decided =
      false;  // a cycle ran (false: nothing had changed, or not everything is synced yet)
};

class DecisionLoop {
 public:
  // `catalog` outlives the loop. InvalidArgument for a profile with an unknown plugin.
  static absl::StatusOr<std::unique_ptr<DecisionLoop>> Make(const Options& options,
                                                            const hook::Catalog* catalog);
  ~DecisionLoop();

  void Apply(const model::ClusterEvent& event);
  StepResult Step(absl::Time now);

  // This replica may write from now on. What the former leader wrote last may not have been seen:
  // nothing is decided until every kind is Synced again, which is to be said when the kind has been
  // listed, or its watch has been seen to be up to date, after the leadership was won.
  void BecomeLeader();

  // A node is to be removed, and the watch of pods has not shown everything up to its taint. A
  // quiet watch says so with its next bookmark, about once a minute; a new snapshot of pods says so
  // at once.
  [[nodiscard]] bool AwaitsPods() const;

  // What was stored of former usage; empty: nothing was. From then on it is stored anew. With an
  // error (what Decode says, FailedPrecondition where none is recorded) recording starts anew too.
  absl::Status RestoreUsage(absl::string_view text);

  // The kinds whose objects may be out of date: the API server has not been heard of them for too
  // long. While there are any, nothing is evicted, bought or removed (what was begun is not
  // repeated either), and verdicts of workloads that would need it say so. An input like an event.
  void SetStale(const std::vector<model::Kind>& kinds);

  // Every kind has been listed once. Before that no decision is made.
  [[nodiscard]] bool synced() const;

  // Whether what queues have used counts, as of the last decision.
  [[nodiscard]] HistoryRow history() const;

  // What people are shown; a copy, O(everything).
  [[nodiscard]] View MakeView(absl::Time now) const;

  // The first broken invariant of state, ledger or hook, or empty. O(everything).
  [[nodiscard]] std::string CheckConsistency() const;

  // Counters since the start, for metrics, benchmarks and tests.
  struct Stats {
    uint64_t events = 0, steps = 0, cycles = 0, bindings = 0, evictions = 0, verdict_writes = 0,
             node_requests = 0, hook_steps = 0;
  };
  [[nodiscard]] const Stats& stats() const;

 private:
  DecisionLoop();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::core
