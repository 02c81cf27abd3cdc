#include "autoscale-hook/providers/karpenter/claim_writes.h"

#include <utility>

namespace fairlead::hook {

void ClaimWrites::Pump() {
  while (!paused_ && !queue_.empty() && in_flight_ < (failures_ > 0 ? 1 : at_once_)) {
    const Send send = std::move(queue_.front());
    queue_.pop_front();
    ++in_flight_;
    if (!send()) --in_flight_;
  }
}

void ClaimWrites::Answered(const absl::Status& status) {
  --in_flight_;
  if (!absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) {
    failures_ = 0;
    return;
  }
  if (paused_) return;
  paused_ = true;
  scheduler_->After(backoff_.Pause(++failures_), [this, owner = owner_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive == nullptr) return;
    paused_ = false;
    resume_();
  });
}

}  // namespace fairlead::hook
