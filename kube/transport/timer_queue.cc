#include "kube/transport/timer_queue.h"

namespace fairlead::kube {

TimerQueue::Id TimerQueue::Add(absl::Duration due, Callback callback, bool* earliest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Id id = ++last_id_;
  const auto it = timers_.emplace(Key(due, id), std::move(callback)).first;
  due_by_id_.emplace(id, due);
  if (earliest != nullptr) *earliest = it == timers_.begin();
  return id;
}

bool TimerQueue::Remove(Id id) {
  Callback dead;  // destroyed after the unlock: it may own anything
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = due_by_id_.find(id);
  if (found == due_by_id_.end()) return false;
  const auto it = timers_.find(Key(found->second, id));
  dead = std::move(it->second);
  timers_.erase(it);
  due_by_id_.erase(found);
  return true;
}

absl::Duration TimerQueue::NextDue() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return timers_.empty() ? absl::InfiniteDuration() : timers_.begin()->first.first;
}

TimerQueue::Callback TimerQueue::TakeDue(absl::Duration now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = timers_.begin();
  if (it == timers_.end() || it->first.first > now) return nullptr;
  Callback callback = std::move(it->second);
  due_by_id_.erase(it->first.second);
  timers_.erase(it);
  return callback;
}

}  // namespace fairlead::kube
