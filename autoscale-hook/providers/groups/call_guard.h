// Callbacks for calls that may be answered late, never or twice: the first answer counts, and
// DeadlineExceeded is the answer if none comes in time. Answers that come after the end of the
// owner are dropped.
//
// Ownership: borrows the scheduler. Thread-safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/scheduler_port.h"

namespace fairlead::hook {

class CallGuard {
 public:
  // `after` is called after each callback.
  CallGuard(Scheduler* scheduler, absl::Duration patience, std::function<void()> after)
      : scheduler_(scheduler), patience_(patience), after_(std::move(after)) {}

  // Before the first Once(). The owner lives during its callbacks.
  void SetOwner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // T is a Status or a StatusOr. `call` names the call for the text of the error.
  template <typename T>
  std::function<void(T)> Once(const std::string& call, std::function<void(T)> then) const {
    const auto open = std::make_shared<std::function<void(T)>>(std::move(then));
    std::function<void(T)> answer = [open, weak = owner_, after = after_](T value) {
      if (*open == nullptr) return;
      const std::function<void(T)> now = std::exchange(*open, nullptr);
      const std::shared_ptr<void> owner = weak.lock();
      if (owner == nullptr) return;
      now(std::move(value));
      after();
    };
    scheduler_->After(patience_, [answer, call, patience = patience_] {
      answer(absl::DeadlineExceededError(
          absl::StrCat(call, ": no answer within ", absl::FormatDuration(patience))));
    });
    return answer;
  }

 private:
  Scheduler* scheduler_;
  absl::Duration patience_;
  std::function<void()> after_;
  std::weak_ptr<void> owner_;
};

}  // namespace fairlead::hook
