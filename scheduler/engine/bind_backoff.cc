#include "scheduler/engine/bind_backoff.h"

#include <algorithm>

namespace fairlead::engine {

void BindBackoff::OnFailed(const std::string& uid, absl::Time now) {
  Entry& entry = entries_[uid];
  entry.until = now + delay_.Pause(++entry.failures);
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
    const bool failed = entry.second.failures > 0;
    return entry.second.until + (failed ? 2 * delay_.max : absl::ZeroDuration()) < now;
  });
}

}  // namespace fairlead::engine
