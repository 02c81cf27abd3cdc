// Carries out the core's decisions, and answers every action with exactly one ActionResult.
//
// - write_protocol.h says what each answer of the server means.
// - All but events is attempted once: the core repeats it, because it looks first whether it is
//   still wanted and whether it still sees the cluster. For the same reason it does not wait for
//   long: an eviction or a write about a node that has not been sent kFreshFor after Submit is
//   answered instead, and the others if their turn comes later than kQueuedFor after Submit.
// - Events are retried here, Options::event_attempts requests in all, with growing jittered delays
//   that respect Retry-After.
// - What follows an eviction that is done (its condition) goes behind all other writes, after the
//   action's answer, and is retried.
// - Writes are ordered by lane: bindings, evictions, nodes and node requests, status patches,
//   events; per object in the order of submission (write_queue.h). The lower lanes leave a part of
//   the window free, so a burst of them never delays a binding by more than one answer.
// - write_window.h says how many writes run at once.
// - A SetPodUnschedulable or NominateNode that was overtaken, before it was sent, by a newer
//   SetPodUnschedulable of its pod is answered OK; by the pod's binding, Cancelled, because the
//   binding may be refused.
// - Events beyond Options::max_queued_events are shed: ResourceExhausted and a counter. So is any
//   action beyond max_queued. An event that repeats is counted, and told by patches of its series
//   (event_series.h); what is only counted is answered OK.
// - LaunchNode, TerminateNode, AskExtenders, and bindings that an extender makes, go to `provider`,
//   which answers them itself.
// - `may_write` is the fence of leadership, checked before every request. If it is false, an action
//   that is not on the wire is answered Aborted, or Unavailable if an earlier attempt's outcome is
//   unknown. `time_left` bounds each request's time-out, so that none is on the wire when another
//   process may lead.
//
// Statuses beyond those of model::ActionResult: Aborted (definitely not done: fenced, shutting
// down, throttled to the end, not sent within kFreshFor), Cancelled (never sent, because its turn
// came too late, or the binding of its pod came), InvalidArgument and PermissionDenied (the server
// will never accept it), ResourceExhausted (shed), Unimplemented (no provider). An eviction or a
// new node request that was only put off (Aborted, but for the fence) is answered Unavailable:
// after a refusal the core would decide anew, and rest the pod or the machine type.
//
// Thread-safety: every method from any thread. `may_write` is called under the executor's lock and
// must be quick and not call back; `provider` is called in Submit, without it. Transport, timers,
// clock and queue must outlive the executor; later callbacks are ignored.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "kube/write/event_series.h"
#include "kube/write/write_protocol.h"
#include "kube/write/write_queue.h"
#include "kube/write/write_window.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

// How long an eviction or a write about a node may wait to be sent. Above a round trip and the
// length of a burst, below the time in which people or controllers change what it was decided for.
inline constexpr absl::Duration kFreshFor = absl::Seconds(2);
// The same for bindings and status patches, which come in long bursts.
inline constexpr absl::Duration kQueuedFor = absl::Seconds(5);

// Counts of durations by powers of two: bucket i has those below 2^i ms, the last one the rest.
struct LatencyHistogram {
  static constexpr int kBuckets = 17;
  std::array<int64_t, kBuckets> counts{};
  absl::Duration sum = absl::ZeroDuration();
  void Add(absl::Duration latency);
  [[nodiscard]] int64_t total() const;
};

struct ExecutorOptions {
  WriteWindow::Options window;
  WriterIdentity identity;
  int event_attempts = 2;
  int follow_up_attempts = 6;  // requests for what follows a write that is done
  absl::Duration backoff_initial = absl::Milliseconds(200);
  absl::Duration backoff_max = absl::Seconds(10);
  absl::Duration request_timeout = absl::Seconds(15);
  // The upper bound of a request's time-out; none: request_timeout alone. Called under the
  // executor's lock, as `may_write`.
  std::function<absl::Duration()> time_left = nullptr;
  size_t max_queued_events = 1000;
  size_t max_queued = 200'000;  // of each other lane
};

struct ExecutorStats {
  int in_flight = 0, window = 0;
  int64_t window_decreases = 0;
  std::array<size_t, kWriteLanes> queued{};  // not yet answered
  std::array<int64_t, kWriteLanes> answered{}, failed{};
  int64_t retries = 0, replaced = 0, fenced = 0, expired = 0;  // expired: not sent in time
  int64_t shed = 0, shed_events = 0;                           // of all lanes, and of events alone
  absl::flat_hash_map<std::string, int64_t> requests_by_verb;  // "GET", "POST", ...
  LatencyHistogram request_latency;
  LatencyHistogram action_latency;  // from Submit to the answer, without shed and fenced ones
};

class Executor {
 public:
  using Provider = std::function<void(const model::Action&)>;
  using Gate = std::function<bool()>;

  // Without a gate every write is allowed.
  Executor(HttpTransport& transport, Timers& timers, const Clock& clock, EventQueue& results,
           ExecutorOptions options, Provider provider = nullptr, Gate may_write = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void Submit(const model::Action& action);
  // Checks the gate again. Call it when leadership is lost, so that queued actions are answered.
  void Poke();

  // Answers every later Submit with Aborted; queued actions continue.
  void BeginDrain();
  // The same, and answers what is not on the wire: Aborted, or Unavailable. What is on the wire
  // ends with its answer or its time-out: Idle says when.
  void Abandon();
  [[nodiscard]] bool Idle() const;
  // Calls BeginDrain and waits (real time) until everything is answered or `timeout` has passed.
  // Then answers the rest: Aborted, or Unavailable if on the wire. Never from a callback. True if
  // all was done. If false, requests may still be on the wire, and done by the server later.
  bool Drain(absl::Duration timeout);

  [[nodiscard]] ExecutorStats GetStats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::kube
