#include "dashboard/cached_text.h"

#include <algorithm>

namespace fairlead::dashboard {

absl::StatusOr<std::shared_ptr<const std::string>> CachedText::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (clock_->Steady() >= next_ask_at_) {
    absl::StatusOr<SourceText> taken = source_();
    const absl::Duration now = clock_->Steady();
    failure_ = taken.status();
    next_ask_at_ = now + interval_;
    if (taken.ok()) {
      next_ask_at_ = now + std::max(interval_, taken->cost * kCostShare);
      text_ = std::make_shared<const std::string>(std::move(taken->text));
      taken_at_ = now;
    }
  }
  if (failure_.ok() || clock_->Steady() - taken_at_ < kStale) return text_;
  return failure_;
}

}  // namespace fairlead::dashboard
