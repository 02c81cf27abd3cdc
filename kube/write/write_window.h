// How many writes may be in flight at once: additive increase, multiplicative decrease. There is no
// client-side rate limit; the window follows the server's signals of overload (429 with
// Retry-After, 503, time-outs, latency).
//
// - A full window of successes while the window was the limit adds `step`. Writes that never filled
//   it prove nothing.
// - 429, 503 and time-outs halve it, and so does a smoothed latency above `latency_factor` times
//   the best of the last two `best_period`s. Below `latency_floor` latency is no signal: a server
//   that answers one write in 1 ms and 100 at once in 80 ms is busy, not overloaded, and one that
//   collects its garbage answers a few hundred milliseconds late.
// - There is one decrease per round trip: writes sent before the last decrease do not decrease
//   again.
// - Retry-After pauses all new writes.
//
// Time is passed in: steady time, as of Clock::Steady. Thread-safety: none. Complexity: O(1).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace fairlead::kube {

enum class WriteOutcome {
  kOk,          // any answer that shows no distress, 4xx included
  kThrottled,   // 429
  kOverloaded,  // 503, time-out
  kNeutral,     // independent of the server's load: a broken connection, 500
};

class WriteWindow {
 public:
  struct Options {
    int start = 100;  // the streams of one connection
    int min = 4;
    int max = 150;  // HTTP/2 gives 100 streams a connection; writes have two
    int step = 4;
    int latency_factor = 4;
    absl::Duration latency_floor = absl::Milliseconds(500);
    absl::Duration best_period = absl::Minutes(1);
  };

  WriteWindow() : WriteWindow(Options()) {}
  explicit WriteWindow(const Options& options) : options_(options), size_(options.start) {}

  // True if a write that leaves `reserved` places of the window free may start. At least one place
  // is open to every write.
  [[nodiscard]] bool MayStart(absl::Duration now, int reserved = 0) const;
  // Counts a write in flight; the caller keeps the start time for Finished.
  void Started() { ++in_flight_; }
  void Finished(WriteOutcome outcome, absl::Duration started_at, absl::Duration now,
                absl::Duration retry_after);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int in_flight() const { return in_flight_; }
  [[nodiscard]] int64_t decreases() const { return decreases_; }
  // No write starts before this; in the past if there is no pause.
  [[nodiscard]] absl::Duration paused_until() const { return paused_until_; }

 private:
  void Decrease(absl::Duration started_at, absl::Duration now);
  // True if the latency has become a multiple of the best.
  bool NoteLatency(absl::Duration latency, absl::Duration now);

  Options options_;
  int size_;
  int in_flight_ = 0;
  int successes_ = 0;       // since the last change of size
  bool was_limit_ = false;  // the window was full since the last change of size
  int64_t decreases_ = 0;
  absl::Duration last_decrease_ = -absl::InfiniteDuration();
  absl::Duration paused_until_ = -absl::InfiniteDuration();

  absl::Duration smoothed_ = absl::ZeroDuration();  // moving average, weight 1/8
  absl::Duration best_now_ = absl::InfiniteDuration();
  absl::Duration best_before_ = absl::InfiniteDuration();
  absl::Duration period_start_ = -absl::InfiniteDuration();
};

}  // namespace fairlead::kube
