// Virtual time: future events, ordered by (time, order of posting). Nothing here reads a real
// clock.
//
// Ownership: owns the callbacks. Thread-safety: none, one thread. Determinism: two events at one
// instant run in the order in which they were posted. Complexity: O(log n) per event.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::sim {

class EventQueue {
 public:
  explicit EventQueue(absl::Time start) : now_(start) {}

  [[nodiscard]] absl::Time now() const { return now_; }
  // The instant of the first event; infinite future if there is none.
  [[nodiscard]] absl::Time next() const;

  // An instant in the past means now.
  void At(absl::Time when, std::function<void()> what);
  void After(absl::Duration delay, std::function<void()> what) {
    At(now_ + delay, std::move(what));
  }

  // Moves the clock to `when` (never back) and runs everything due until then, including events
  // that those events post.
  void RunUntil(absl::Time when);

 private:
  struct Event {
    absl::Time when;
    uint64_t sequence;
    std::function<void()> what;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };
  absl::Time now_;
  uint64_t next_sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
};

}  // namespace fairlead::sim
