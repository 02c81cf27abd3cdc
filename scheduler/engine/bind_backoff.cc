#include "scheduler/engine/bind_backoff.h"

#include <algorithm>

namespace fairlead::engine {

void BindBackoff::OnFailed(const std::string& uid, absl::Time now) {
  Entry& entry = entries_[uid];
  const bool first = entry.delay == absl::ZeroDuration();
  entry.delay = first ? initial_ : std::min(2 * entry.delay, max_);
  entry.until = now + entry.delay;
}

void BindBackoff::Hold(const std::string& uid, absl::Time until) {
  Entry& entry = entries_[uid];
  entry.until = std::max(entry.until, until);
}

bool BindBackoff::Holds(const std::string& uid, absl::Time now) const {
  const auto found = entries_.find(uid);
  return found != entries_.end() && found->second.until > now;
}

absl::Time BindBackoff::NextEnd(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [uid, entry] : entries_) {
    if (entry.until > now) next = std::min(next, entry.until);
  }
  return next;
}

void BindBackoff::Trim(absl::Time now) {
  absl::erase_if(entries_, [&](const auto& entry) {
    const bool failed = entry.second.delay > absl::ZeroDuration();
    return entry.second.until + (failed ? 2 * max_ : absl::ZeroDuration()) < now;
  });
}

}  // namespace fairlead::engine
