// The invariant about Jobs that Fairlead suspends instead of evicting their pods; checks.h lists it
// with the others. What it writes is judged as it is written: a Job is suspended with the mark by
// which it is found again, as a whole, and never against a PodDisruptionBudget; only what has the
// mark is released, and it is released in time.
//
// Ownership: borrows. Thread-safety: none, one thread. Complexity: a write O(pods); a second
// O(Jobs).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

// Its controller has 15 s to begin and its pods two minutes to end (core/suspensions.h); a write
// that is refused is repeated after a minute at most.
inline constexpr absl::Duration kSuspended = absl::Minutes(4);
// A PodDisruptionBudget that is younger may not have been heard of.
inline constexpr absl::Duration kBudgetKnown = absl::Seconds(15);

class SuspensionChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  // A pod goes because of it, for that reason.
  using Going = std::function<void(const sim::world::PodFacts& pod, const std::string& why)>;
  SuspensionChecks(const sim::EventQueue* time, const sim::world::ApiServer* server,
                   const sim::world::Truth* truth, Fail fail, Going going)
      : time_(time),
        server_(server),
        truth_(truth),
        fail_(std::move(fail)),
        going_(std::move(going)) {}

  // Whether the write suspends a Job.
  static bool Suspends(const sim::world::ApiServer::Commit& commit);
  // Fairlead has written an object.
  void OnWrite(const sim::world::ApiServer::Commit& commit);
  // Pods that run in the queue, or below it, leave with a Job that is suspended.
  [[nodiscard]] bool EndsPodsOf(const std::string& queue) const;
  // `calm_since`: no fault has lasted since then.
  void EverySecond(absl::Time calm_since);

 private:
  void CheckSuspension(const sim::world::Json& job);

  const sim::EventQueue* time_;
  const sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  Fail fail_;
  Going going_;
  std::map<std::string, absl::Time> since_;  // by uid
};

}  // namespace fairlead::simtest
