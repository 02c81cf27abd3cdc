// The one rule for answers to writes, the one back-off between attempts, and the progress of one
// desired write. Everything that is written follows it (the table is in docs/architecture.md).
//
//   OK                               done; the watch shows its effect
//   Unavailable, DeadlineExceeded    unknown: the write may have been done or may still be done
//   anything else                    refused: nothing was done
//
// After one unknown outcome a refusal of a repetition proves nothing: the first attempt may be its
// reason. Such a write stays in doubt until the watch, or an OK, decides. What a fresh watch does
// not show kDoubtLasts after the last unknown outcome was not done: then a refusal is believed.
//
// A part that writes keeps a WriteAttempts per write, and nothing else, to know what is in flight,
// in doubt, how often it failed and when it is due.
//
// Thread-safety: pure functions, plain values. Complexity: O(1); Pause O(log(max / initial)).
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fairlead {

enum class Outcome : uint8_t { kDone, kUnknown, kRefused };

// `in_doubt`: the outcome of an earlier attempt at the same write is unknown.
inline Outcome OutcomeOf(const absl::Status& status, bool in_doubt) {
  if (status.ok()) return Outcome::kDone;
  if (in_doubt || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return Outcome::kUnknown;
  }
  return Outcome::kRefused;
}

// A fresh watch shows what was written so long ago, and no request travels for so long.
inline constexpr absl::Duration kDoubtLasts = absl::Seconds(90);

// Pauses that double from `initial` to `max`.
struct Backoff {
  absl::Duration initial, max;
  // After the `attempts`th failure in a row, from 1.
  [[nodiscard]] absl::Duration Pause(int64_t attempts) const {
    absl::Duration pause = initial;
    for (int64_t i = 1; i < attempts && pause < max; ++i) pause *= 2;
    return std::min(pause, max);
  }
};

// The attempts at one desired write. The owner keeps the desired value beside it and checks that
// the write is still wanted right before each attempt.
class WriteAttempts {
 public:
  static constexpr Backoff kNever = {absl::InfiniteDuration(), absl::InfiniteDuration()};
  struct Rules {
    Backoff backoff = kNever;  // after a refusal or an unknown outcome
    Backoff silence = kNever;  // an attempt without an answer for so long counts as unknown
    Backoff unseen = kNever;   // after an OK whose effect the watch does not show
    // A refusal is believed in doubt, too: a wrong belief costs little, and the watch corrects it.
    bool believes_refusals = false;
  };

  // The time of the next attempt if the write is still wanted; infinite future: an answer decides.
  [[nodiscard]] absl::Time due() const { return due_; }
  [[nodiscard]] bool MayGo(absl::Time now) const { return due_ <= now; }
  [[nodiscard]] bool in_flight() const { return in_flight_; }
  // The last answer was OK.
  [[nodiscard]] bool accepted() const { return accepted_; }
  [[nodiscard]] bool in_doubt() const { return in_doubt_; }
  // True if the write may have been done or may still be done.
  [[nodiscard]] bool open() const { return in_flight_ || accepted_ || in_doubt_; }
  // True if an attempt was made since Settle().
  [[nodiscard]] bool started() const { return open() || failures_ > 0; }
  // The last answer was not OK, and no attempt followed it.
  [[nodiscard]] bool failed() const { return failures_ > 0 && !in_flight_ && !accepted_; }
  // `status`, the last answer, neither did the write nor judged it: 429, 401 or no leader
  // (Aborted), or its turn came too late (Cancelled). It is repeated as it is, and nothing is told
  // of it. The last of kPutOffsThatRefuse answers Aborted in a row counts as a refusal.
  [[nodiscard]] bool IsPutOff(const absl::Status& status) const {
    return absl::IsCancelled(status) || (absl::IsAborted(status) && failures_ < kPutOffsThatRefuse);
  }
  // After such an answer the pause goes on.
  [[nodiscard]] bool Pauses(absl::Time now) const { return failed() && now < due_; }
  // When the last attempt became one of unknown outcome; infinite past if there is none.
  [[nodiscard]] absl::Time unknown_at() const { return unknown_at_; }
  // Failed attempts since the last success.
  [[nodiscard]] int64_t failures() const { return failures_; }

  void Sent(absl::Time now, const Rules& rules) {
    if (in_flight_) {  // it stayed without an answer
      in_doubt_ = true;
      unknown_at_ = now;
      ++failures_;
    }
    in_flight_ = true;
    accepted_ = false;
    due_ = now + rules.silence.Pause(failures_ + 1);
  }

  // The answer to the last attempt. Changes nothing if none is in flight. `fresh`: the watch is not
  // stale and does not show the effect, so it ends a doubt that is older than kDoubtLasts.
  Outcome Answered(const absl::Status& status, absl::Time now, const Rules& rules,
                   bool fresh = false) {
    return Answered(OutcomeOf(status, /*in_doubt=*/false), now, rules, fresh);
  }
  // The same for an answer that means something else by itself than OutcomeOf says.
  Outcome Answered(Outcome answer, absl::Time now, const Rules& rules, bool fresh = false) {
    const bool over = rules.believes_refusals || (fresh && now >= unknown_at_ + kDoubtLasts);
    if (in_flight_ && answer == Outcome::kRefused && over) in_doubt_ = false;
    const bool unproved = answer == Outcome::kRefused && in_doubt_;
    const Outcome outcome = unproved ? Outcome::kUnknown : answer;
    if (!in_flight_) return outcome;
    in_flight_ = false;
    if (answer == Outcome::kUnknown) unknown_at_ = now;
    if (outcome == Outcome::kDone) {
      in_doubt_ = false;
      accepted_ = true;
      failures_ = 0;
      due_ = now + rules.unseen.Pause(++unseen_);
    } else {
      in_doubt_ = in_doubt_ || outcome == Outcome::kUnknown;
      due_ = now + rules.backoff.Pause(++failures_);
    }
    return outcome;
  }

  // The watch has decided, or something else is desired: begins again, not before that time.
  void Settle(absl::Time not_before = absl::InfinitePast()) {
    *this = WriteAttempts();
    due_ = not_before;
  }
  // Ends a pause, but not an attempt in flight.
  void EndPause() {
    if (!in_flight_ && !accepted_) due_ = absl::InfinitePast();
  }

 private:
  static constexpr int64_t kPutOffsThatRefuse = 5;

  absl::Time due_ = absl::InfinitePast(), unknown_at_ = absl::InfinitePast();
  int32_t failures_ = 0, unseen_ = 0;  // bindings have one of these for each pod in progress
  bool in_flight_ = false, accepted_ = false, in_doubt_ = false;
};

}  // namespace fairlead
