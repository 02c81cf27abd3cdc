// The condition of one object that this program alone writes: as it is desired, as it was sent
// last, and as the API server has it (base/write_attempts.h). It is written when it says something
// else than the object has, and repeated after a refusal or an unknown outcome; what the server
// calls invalid (and what is about an object that is gone) waits until something else is desired.
//
// Condition: a value with `bool SaysTheSame(const Condition&) const`.
// Thread-safety: the owner's thread. Complexity: O(1).
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"

namespace fairlead::core {

template <typename Condition>
class ConditionWrite {
 public:
  // The watch.
  void Show(Condition shown) {
    shown_ = std::move(shown);
    if (attempts_.in_flight() && shown_.SaysTheSame(sent_)) seen_ = true;
    if (attempts_.started() && !attempts_.in_flight()) SettleIfShown();
  }
  [[nodiscard]] const Condition& shown() const { return shown_; }

  // When it may be written; none: there is nothing to write. Then call Sent().
  [[nodiscard]] std::optional<absl::Time> WriteAt(const Condition& desired) {
    const bool same = desired.SaysTheSame(sent_);
    if (ended_ && same) return std::nullopt;
    // What was accepted is what the server will show.
    const bool there = attempts_.accepted() ? same : desired.SaysTheSame(shown_);
    if (there && !attempts_.in_doubt()) return std::nullopt;
    if (attempts_.accepted()) attempts_.Settle();
    return attempts_.due();
  }
  // True: it is to be written now, and counts as sent. If it may be written later, `wake_at` is not
  // after that.
  [[nodiscard]] bool Take(const Condition& desired, absl::Time now,
                          const WriteAttempts::Rules& rules, absl::Time& wake_at) {
    const std::optional<absl::Time> at = WriteAt(desired);
    if (!at.has_value()) return false;
    if (*at > now) {
      wake_at = std::min(wake_at, *at);
      return false;
    }
    Sent(desired, now, rules);
    return true;
  }
  void Sent(Condition condition, absl::Time now, const WriteAttempts::Rules& rules) {
    ended_ = seen_ = false;
    sent_ = std::move(condition);
    attempts_.Sent(now, rules);
  }
  void Answered(const absl::Status& status, absl::Time now, const WriteAttempts::Rules& rules) {
    // NotFound: the watch will say so.
    ended_ = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
    if (attempts_.Answered(status, now, rules) == Outcome::kDone) SettleIfShown();
    seen_ = false;
  }
  // After Answered(): when a repetition is due.
  [[nodiscard]] absl::Time due() const { return attempts_.due(); }
  // It is about another object of that name from now on.
  void Restart() {
    attempts_.Settle();
    ended_ = false;
  }

 private:
  void SettleIfShown() {
    if (seen_ || shown_.SaysTheSame(sent_)) attempts_.Settle();
  }

  Condition shown_, sent_;
  WriteAttempts attempts_;
  // It was shown while its answer was awaited; since then another client may have written one.
  bool seen_ = false;
  bool ended_ = false;  // the server calls what was sent invalid, or the object is gone
};

}  // namespace fairlead::core
