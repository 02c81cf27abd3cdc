// Whether the owner's thread answers. Another thread asks, and the owner's next turn answers; a
// question that stays open for longer than `limit` means that the thread hangs. The lease is
// renewed, and /livez is OK, only while the thread answers.
//
// There is no timer: only the question wakes an idle owner, a few times a second at most.
//
// Thread-safety: Ask, Open and unanswered_for from any thread, Answer on the owner's. `wake` is
// called within Ask and must not block. The clock outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"

namespace fairlead::cmd {

class Heartbeat {
 public:
  Heartbeat(const Clock* clock, absl::Duration limit, std::function<void()> wake)
      : clock_(clock), limit_(limit), wake_(std::move(wake)) {}

  // Asks, unless a question is open. False if one has been open for more than the limit.
  bool Ask() {
    int64_t open = kNone;
    if (asked_at_ns_.compare_exchange_strong(open, Now())) {
      wake_();
      return true;
    }
    return absl::Nanoseconds(Now() - open) <= limit_;
  }
  void Answer() { asked_at_ns_.store(kNone); }

  [[nodiscard]] bool open() const { return asked_at_ns_.load() != kNone; }
  // Zero if no question is open.
  [[nodiscard]] absl::Duration unanswered_for() const {
    const int64_t asked = asked_at_ns_.load();
    return asked == kNone ? absl::ZeroDuration() : absl::Nanoseconds(Now() - asked);
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  [[nodiscard]] int64_t Now() const { return absl::ToInt64Nanoseconds(clock_->Steady()); }

  const Clock* const clock_;
  const absl::Duration limit_;
  const std::function<void()> wake_;
  std::atomic<int64_t> asked_at_ns_{kNone};  // steady
};

}  // namespace fairlead::cmd
