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
  // An entry that has outlived its own delay twice over is no longer a streak of failures.
  absl::erase_if(entries_, [now](const auto& entry) {
    return entry.second.until + 2 * entry.second.delay < now;
  });
}

}  // namespace fairlead::engine
