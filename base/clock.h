// Time as a port: nothing in the core reads the machine's clock. Adapters own a RealClock; the
// simulator and the tests own a FakeClock.
//
// Thread-safety: implementations are safe to read from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fairlead {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, for timestamps in objects and messages. It may jump.
  [[nodiscard]] virtual absl::Time Now() const = 0;
  // Monotonic time since an arbitrary start, for intervals and timeouts. It never decreases.
  [[nodiscard]] virtual absl::Duration Steady() const = 0;
};

class RealClock final : public Clock {
 public:
  [[nodiscard]] absl::Time Now() const override { return absl::Now(); }
  [[nodiscard]] absl::Duration Steady() const override;
};

// Does not advance by itself.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start) : start_(start) {}
  [[nodiscard]] absl::Time Now() const override {
    return start_ + Steady() + absl::Nanoseconds(wall_offset_ns_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] absl::Duration Steady() const override {
    return absl::Nanoseconds(elapsed_ns_.load(std::memory_order_relaxed));
  }
  void Advance(absl::Duration by) {
    elapsed_ns_.fetch_add(absl::ToInt64Nanoseconds(by), std::memory_order_relaxed);
  }

  // Sets the wall clock; Steady() is unaffected.
  void SetWallOffset(absl::Duration offset) {
    wall_offset_ns_.store(absl::ToInt64Nanoseconds(offset), std::memory_order_relaxed);
  }

 private:
  absl::Time start_;
  std::atomic<int64_t> elapsed_ns_{0}, wall_offset_ns_{0};
};

}  // namespace fairlead
