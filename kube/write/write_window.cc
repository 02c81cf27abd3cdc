#include "kube/write/write_window.h"

#include <algorithm>

namespace fairlead::kube {

bool WriteWindow::MayStart(absl::Duration now, int reserved) const {
  return now >= paused_until_ && in_flight_ < std::max(1, size_ - reserved);
}

void WriteWindow::Finished(WriteOutcome outcome, absl::Duration started_at, absl::Duration now,
                           absl::Duration retry_after) {
  if (in_flight_ >= size_) was_limit_ = true;
  --in_flight_;
  if (retry_after > absl::ZeroDuration()) {
    paused_until_ = std::max(paused_until_, now + retry_after);
  }
  switch (outcome) {
    case WriteOutcome::kNeutral:
      return;
    case WriteOutcome::kThrottled:
    case WriteOutcome::kOverloaded:
      return Decrease(started_at, now);
    case WriteOutcome::kOk:
      break;
  }
  if (NoteLatency(now - started_at, now)) return Decrease(started_at, now);
  if (++successes_ < size_) return;
  successes_ = 0;
  if (was_limit_) size_ = std::min(options_.max, size_ + options_.step);
  was_limit_ = false;
}

void WriteWindow::Decrease(absl::Duration started_at, absl::Duration now) {
  if (started_at < last_decrease_) return;
  last_decrease_ = now;
  ++decreases_;
  size_ = std::max(options_.min, size_ / 2);
  successes_ = 0;
  was_limit_ = false;
  // The measurements belong to the former size.
  smoothed_ = absl::ZeroDuration();
}

bool WriteWindow::NoteLatency(absl::Duration latency, absl::Duration now) {
  if (now - period_start_ >= options_.best_period) {
    best_before_ = best_now_;
    best_now_ = absl::InfiniteDuration();
    period_start_ = now;
  }
  best_now_ = std::min(best_now_, latency);
  smoothed_ = smoothed_ == absl::ZeroDuration() ? latency : smoothed_ + (latency - smoothed_) / 8;
  const absl::Duration best = std::min(best_now_, best_before_);
  return smoothed_ > options_.latency_floor && smoothed_ > options_.latency_factor * best;
}

}  // namespace fairlead::kube
