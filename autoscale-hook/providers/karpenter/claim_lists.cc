#include "autoscale-hook/providers/karpenter/claim_lists.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::hook {

void ClaimLists::Start(std::weak_ptr<void> owner) {
  owner_ = std::move(owner);
  Arm(absl::ZeroDuration());
}

void ClaimLists::Hurry() {
  // A list under way is followed by another one soon, and after a failure the pause counts.
  if (running_ || failures_ > 0) return;
  const absl::Duration delay = Delay(/*busy=*/true);
  if (delay < armed_) Arm(delay);
}

absl::Duration ClaimLists::Delay(bool busy) const {
  return std::max(busy ? options_.poll : options_.idle_poll,
                  absl::Milliseconds(static_cast<int64_t>(last_count_)));
}

void ClaimLists::Arm(absl::Duration delay) {
  armed_ = delay;
  scheduler_->After(delay, [this, owner = owner_, timer = ++timer_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr && timer == timer_) Begin();
  });
}

void ClaimLists::Begin() {
  ++begun_;
  running_ = true;
  claims_.clear();
  pages_ = 0;
  ListPage("");
}

void ClaimLists::ListPage(const std::string& continuation) {
  api_->List(continuation, [this, owner = owner_](absl::StatusOr<ClaimPage> page) {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr) OnPage(std::move(page));
  });
}

void ClaimLists::OnPage(absl::StatusOr<ClaimPage> page) {
  if (!page.ok()) return Fail(page.status());
  for (const absl::Status& fault : page->faults) Tell(fault, told_fault_);
  std::move(page->claims.begin(), page->claims.end(), std::back_inserter(claims_));
  if (claims_.size() > kMostClaims || ++pages_ > kMostPages) {
    return Fail(absl::OutOfRangeError(
        absl::StrCat("more than ", kMostClaims, " claims or ", kMostPages, " pages")));
  }
  if (!page->next.empty()) return ListPage(page->next);
  failures_ = 0;
  told_failure_.clear();
  last_count_ = claims_.size();
  client_->OnListed(begun_, std::exchange(claims_, {}));
  running_ = false;
  Arm(Delay(client_->IsBusy()));
}

void ClaimLists::Fail(const absl::Status& status) {
  claims_.clear();
  Tell({status.code(), absl::StrCat("listing NodeClaims: ", status.message())}, told_failure_);
  running_ = false;
  Arm(std::max(options_.backoff.Pause(++failures_), Delay(/*busy=*/true)));
}

void ClaimLists::Tell(const absl::Status& problem, std::string& told) {
  if (told == problem.message()) return;
  told = std::string(problem.message());
  client_->OnListProblem(problem);
}

}  // namespace fairlead::hook
