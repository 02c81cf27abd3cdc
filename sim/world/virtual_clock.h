// The clock of one replica: the world's time, and how far this machine's wall clock is off. Steady
// never jumps.
//
// Thread-safety: none beyond base/clock.h; one thread moves the world.
#pragma once

#include "absl/time/time.h"
#include "base/clock.h"
#include "sim/event_queue.h"

namespace fairlead::sim::world {

class VirtualClock final : public Clock {
 public:
  VirtualClock(const EventQueue* time, absl::Time start) : time_(time), start_(start) {}
  [[nodiscard]] absl::Time Now() const override { return time_->now() + offset_; }
  [[nodiscard]] absl::Duration Steady() const override { return time_->now() - start_; }
  // The machine's wall clock is off by this from now on.
  void SetOffset(absl::Duration offset) { offset_ = offset; }

 private:
  const EventQueue* time_;
  absl::Time start_;
  absl::Duration offset_ = absl::ZeroDuration();
};

}  // namespace fairlead::sim::world
