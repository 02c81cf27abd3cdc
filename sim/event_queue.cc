#include "sim/event_queue.h"

#include <algorithm>
#include <utility>

namespace fairlead::sim {

absl::Time EventQueue::next() const {
  return events_.empty() ? absl::InfiniteFuture() : events_.top().when;
}

void EventQueue::At(absl::Time when, std::function<void()> what) {
  events_.push({std::max(when, now_), next_sequence_++, std::move(what)});
}

void EventQueue::RunUntil(absl::Time when) {
  while (!events_.empty() && events_.top().when <= when) {
    now_ = events_.top().when;
    std::function<void()> what = events_.top().what;  // top() is const
    events_.pop();
    what();
  }
  now_ = std::max(now_, when);
}

}  // namespace fairlead::sim
