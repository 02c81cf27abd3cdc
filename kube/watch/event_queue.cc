#include "kube/watch/event_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"

namespace fairlead::kube {
namespace {

using model::ClusterEvent;

// The variant's alternatives are in the order of the kinds (kube/codec/codec.h).
std::string ObjectKey(const Object& object) {
  return absl::StrCat(object.index(), "/", model::Key(MetaOf(object)));
}

}  // namespace

void EventQueue::PushLocked(ClusterEvent event) {
  ++stats_.pushed;
  std::string key;
  const std::string* uid = nullptr;
  const bool is_upsert = std::holds_alternative<model::Upsert>(event);
  if (is_upsert) {
    const Object& object = std::get<model::Upsert>(event).object;
    key = ObjectKey(object);
    uid = &MetaOf(object).uid;
  } else if (const auto* deletion = std::get_if<model::Delete>(&event)) {
    key = absl::StrCat(static_cast<size_t>(deletion->kind), "/",
                       model::Key(deletion->ns, deletion->name));
    uid = &deletion->uid;
  } else {
    events_.push_back(std::move(event));
    return;
  }
  const auto found = upserts_.find(key);
  if (found != upserts_.end()) {
    ClusterEvent& queued = events_[found->second];
    if (MetaOf(std::get<model::Upsert>(queued).object).uid == *uid) {
      ++stats_.merged;
      queued = std::move(event);
      if (!is_upsert) upserts_.erase(found);
      return;
    }
    upserts_.erase(found);
  }
  if (is_upsert) upserts_.emplace(std::move(key), events_.size());
  events_.push_back(std::move(event));
}

void EventQueue::Push(ClusterEvent event) {
  std::vector<ClusterEvent> one;
  one.push_back(std::move(event));
  PushAll(std::move(one));
}

void EventQueue::PushAll(std::vector<ClusterEvent> events) {
  if (events.empty()) return;
  bool was_empty = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    was_empty = events_.empty();
    for (ClusterEvent& event : events) PushLocked(std::move(event));
    stats_.peak = std::max(stats_.peak, events_.size());
  }
  if (!was_empty) return;
  ready_.notify_one();
  if (wake_callback_) wake_callback_();
}

size_t EventQueue::DrainInto(std::vector<ClusterEvent>& out, absl::Duration max_wait,
                             absl::Duration gather) {
  const auto gathered = std::chrono::steady_clock::now() +
                        absl::ToChronoNanoseconds(std::max(gather, absl::ZeroDuration()));
  std::unique_lock<std::mutex> lock(mutex_);
  const auto has_work = [this] { return !events_.empty() || woken_; };
  if (max_wait == absl::InfiniteDuration()) {
    ready_.wait(lock, has_work);
  } else if (max_wait > absl::ZeroDuration()) {
    ready_.wait_for(lock, absl::ToChronoNanoseconds(max_wait), has_work);
  }
  if (gather > absl::ZeroDuration() && !events_.empty()) {
    ready_.wait_until(lock, gathered, [this] { return woken_; });
  }
  woken_ = false;
  const size_t count = events_.size();
  if (out.empty()) {
    out.swap(events_);
  } else {
    std::move(events_.begin(), events_.end(), std::back_inserter(out));
  }
  events_.clear();
  upserts_.clear();
  return count;
}

void EventQueue::Wake() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  ready_.notify_one();
  if (wake_callback_) wake_callback_();
}

void EventQueue::SetWakeCallback(std::function<void()> callback) {
  wake_callback_ = std::move(callback);
}

EventQueue::Stats EventQueue::GetStats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Stats stats = stats_;
  stats.queued = events_.size();
  return stats;
}

}  // namespace fairlead::kube
