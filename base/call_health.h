// The circuit breaker of a program that is called (a scheduler extender, a remote plugin): one that
// has failed kFailuresThatPause times in a row is left alone for a pause that doubles, and then
// tried with the next call.
//
// Thread-safety: plain value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/write_attempts.h"

namespace fairlead {

class CallHealth {
 public:
  static constexpr int64_t kFailuresThatPause = 3;
  static constexpr Backoff kPause{absl::Seconds(1), absl::Seconds(30)};

  [[nodiscard]] bool Pauses(absl::Time now) const { return now < paused_until_; }
  // Why the last call failed, if it did.
  [[nodiscard]] const std::string& last_failure() const { return last_failure_; }
  void Succeeded() { *this = {}; }
  void Failed(std::string why, absl::Time now) {
    last_failure_ = std::move(why);
    if (++failures_ < kFailuresThatPause) return;
    paused_until_ = now + kPause.Pause(failures_ - kFailuresThatPause + 1);
  }

 private:
  int64_t failures_ = 0;  // in a row
  absl::Time paused_until_ = absl::InfinitePast();
  std::string last_failure_;
};

}  // namespace fairlead
