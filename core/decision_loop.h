// The whole program without sockets: events in, actions out. `fairlead run`, the simulator, the
// replayer, the benchmarks and the property tests all use this class.
//
//   while (true) { loop.Apply(event)...; Execute(loop.Step(now).actions); <wait> }
//
// where <wait> ends at wake_at or with an event.
//
// A Step costs nothing if nothing changed since the last one and no timer is due.
//
// Ownership: owns the state, the tree, the engine and the hook. Thread-safety: none, one thread.
// Determinism: the same events and the same times give the same actions, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/machines/node_lists.h"
#include "core/doubling_histogram.h"
#include "core/guest_grants.h"
#include "core/input_log.h"
#include "core/options.h"
#include "core/plugin_durations.h"
#include "core/plugin_probe.h"
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

// What waits in memory, each a number of writes. All of them are bounded by the objects of the
// cluster: each object has at most one write of a kind here. (Queues of the adapter:
// kube::ExecutorStats.)
struct QueueSizes {
  size_t in_flight = 0;          // writes that are sent and not answered
  size_t provider_calls = 0;     // the same of calls of the provider
  size_t retries = 0;            // failed or of unknown outcome, and to be repeated after a pause
  size_t verdicts_waiting = 0;   // verdicts and conditions that their pace delays
  size_t evictions_waiting = 0;  // decided and not sent
  size_t bindings_held = 0;      // in Reserve or Permit
  size_t events_waiting = 0;     // to be sent with the next step
  size_t shares_waiting = 0;     // shared GPUs to be looked at, and words about them
  size_t conditions_known = 0;   // of groups' pods, as last written; not a number of writes
};

// Of DecisionLoop::AskGuest.
struct GuestAnswer {
  enum class Kind : uint8_t {
    kNotOurs,    // it names no queue, or its scheduler is no guest: no node is refused
    kUndecided,  // it has not been seen, or not been decided about
    kWaits,      // on no node, for `reason`
    kGranted,    // on `node` alone
    kHeld,       // on `node`, which is reserved for it, once its gang is reserved
  };
  Kind kind = Kind::kUndecided;
  std::string node, reason;
};

class DecisionLoop {
 public:
  // `catalog` outlives the loop. InvalidArgument for a profile with an unknown plugin.
  static absl::StatusOr<std::unique_ptr<DecisionLoop>> Make(const Options& options,
                                                            const hook::Catalog* catalog);
  ~DecisionLoop();
  // Takes over what the hook of another loop of this process has learned (hook::Hook::Continue);
  // everything else is read from objects. Before the first Step.
  void Continue(DecisionLoop& former);
  // It is told of all inputs and decisions from now on, but not that the loop starts; null: none.
  // Not owned.
  void SetInputLog(InputLog* log);

  void Apply(const model::ClusterEvent& event);
  StepResult Step(absl::Time now);

  // Says that this replica may write from now on. The last writes of the former leader may not have
  // been seen. So nothing is decided until every kind is Synced again: after the leadership was
  // won, the kind has been listed, or its watch has been seen to be up to date.
  void BecomeLeader();

  // The nodes that have to be removed while the watch of pods has not shown everything up to their
  // taint, in order of names. A quiet watch does so with its next bookmark, about once a minute; a
  // list of the node's pods does so at once.
  [[nodiscard]] const std::set<std::string>& AwaitedNodes() const;
  // Such a list, begun after the node was awaited, with its version; ended pods may be left out. An
  // input like an event.
  void PodsListed(const std::string& node, absl::string_view version,
                  const std::vector<model::Pod>& pods);

  // What a provider says unasked: about a machine, and what it sells from now on. They count from
  // the next step on.
  void MachineReported(const hook::MachineReport& report);
  void OffersChanged(absl::string_view provider, std::shared_ptr<const hook::Catalog> offers);

  // The number of the list of all nodes that the end of a machine waits for (hook::NodeLists); 0:
  // none. It grows with each list, and stays until that is answered.
  [[nodiscard]] uint64_t AwaitedNodeList() const;
  // The answer to it: the nodes of a consistent list that was begun after its number was known, or
  // why there is none. An input like an event.
  void NodesListed(uint64_t number, absl::StatusOr<std::vector<hook::ListedNode>> nodes);

  // Restores the stored usage; empty: none was stored. Storing starts after this call. After an
  // error (Decode's, or FailedPrecondition if usage is not recorded) the record starts empty.
  absl::Status RestoreUsage(absl::string_view text);

  // The kinds of objects that may be out of date, because their watch has been silent for too long.
  // While there are any, nothing is evicted, provisioned or removed, and no such write is repeated;
  // verdicts of workloads that need it say so. An input like an event.
  void SetStale(const std::vector<model::Kind>& kinds);

  // What another scheduler is told that asks about a pod of its own (guest_grants.h). An input like
  // an event, between two steps: if the pod has a node, the scheduler may be binding it.
  // `reserved_on`: not empty if the scheduler has reserved that node for the pod, and asks whether
  // it may bind it.
  GuestAnswer AskGuest(const model::Pod& pod, absl::string_view reserved_on, absl::Time now);
  // What was granted since the last call; and all grants that have not ended.
  std::vector<GuestGrant> TakeGrants();
  [[nodiscard]] std::vector<GuestGrant> Grants() const;

  // True if every kind has been listed once. Before that no decision is made.
  [[nodiscard]] bool synced() const;

  // Whether the history of usage counts, as of the last decision.
  [[nodiscard]] HistoryRow history() const;

  // The data shown to users; a copy, O(everything).
  [[nodiscard]] View MakeView(absl::Time now) const;
  // Its numbers alone. O(queues + nodes + rows of waiting workloads).
  [[nodiscard]] Totals Count() const;
  // As this loop wants them to be, in order of names; a copy, O(requests).
  [[nodiscard]] std::vector<model::NodeRequest> NodeRequests() const;

  // The first broken invariant of state, ledger or hook, or empty. O(everything).
  [[nodiscard]] std::string CheckConsistency() const;

  // Counters since the start, for metrics, benchmarks and tests.
  struct Stats {
    uint64_t events = 0, steps = 0, cycles = 0, bindings = 0, evictions = 0, verdict_writes = 0,
             node_requests = 0, hook_steps = 0;
    // By scheduler name. `unschedulable`: workloads of which a cycle has tried a pod in vain;
    // equivalent ones count once. `error`: bindings that were sent and refused.
    struct Attempts {
      uint64_t scheduled = 0, unschedulable = 0, error = 0;
      // In microseconds, of `scheduled` and of `error`: from the decision until the answer to the
      // binding; and from the first time that it was sent.
      DoublingHistogram<1'000, 15> scheduled_us = {}, error_us = {};
      DoublingHistogram<100, 12> bound_us = {}, refused_us = {};
      // Of pods that need more than a node: from the decision until all of it was there, or one
      // part failed.
      DoublingHistogram<100, 12> prepared_us = {}, unprepared_us = {};
    };
    std::map<std::string, Attempts, std::less<>> attempts;
    uint64_t preemption_attempts = 0;            // finished searches of reclaim and preempt
    DoublingHistogram<1, 7> preemption_victims;  // by those that found pods to evict: how many
    // From the first step that knew of a pod which could start until its binding was done, in
    // microseconds.
    DoublingHistogram<10'000, 20> scheduling_latency_us;
    // Of pods for which all was there: until they were bound, because the others of their gang were
    // not ready, say; or until they were taken back.
    DoublingHistogram<1'000, 15> permit_granted_us, permit_denied_us;
    PluginDurations plugins;  // at Permit and PreBind
    // Pods that came to wait without scheduling gates; and those that wait again because their
    // binding failed.
    uint64_t pods_added = 0, pods_backing_off = 0;
  };
  [[nodiscard]] const Stats& stats() const;
  // Measures plugins about pods that the last step has decided on, if there are any. Between two
  // steps.
  void Probe(PluginProbe& probe, const PluginProbe::Steady& steady) const;

  // O(what is held and refreshed).
  [[nodiscard]] QueueSizes queue_sizes() const;

 private:
  DecisionLoop();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::core
