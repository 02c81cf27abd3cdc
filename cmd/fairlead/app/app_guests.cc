// What another scheduler asks about a pod of its own, from a thread of the server.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {
namespace {

// The owner's thread answers between two decisions, of which the longest takes seconds.
constexpr absl::Duration kOwnerWait = absl::Seconds(4);
constexpr absl::Duration kAskAgain = absl::Milliseconds(10);

template <typename T>
struct Asked {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<absl::StatusOr<T>> answer;
};

}  // namespace

absl::Status Application::MayAnswer() const {
  if (was_leader_ && !lost_ && !reading_ && loop_->synced()) return absl::OkStatus();
  return absl::UnavailableError("this Fairlead does not lead, or has not read all objects yet");
}

template <typename T>
absl::StatusOr<T> Application::AskLeader(std::function<T()> ask) {
  const auto asked = std::make_shared<Asked<T>>();
  Post([this, asked, ask = std::move(ask)] {
    const absl::Status may = MayAnswer();
    absl::StatusOr<T> answer = may.ok() ? absl::StatusOr<T>(ask()) : may;
    const std::lock_guard<std::mutex> lock(asked->mutex);
    asked->answer = std::move(answer);
    asked->answered.notify_all();
  });
  std::unique_lock<std::mutex> lock(asked->mutex);
  asked->answered.wait_for(lock, absl::ToChronoNanoseconds(kOwnerWait),
                           [&] { return asked->answer.has_value(); });
  if (!asked->answer.has_value())
    return absl::UnavailableError("Fairlead has not answered in time");
  return *asked->answer;
}

absl::StatusOr<std::vector<core::GuestGrant>> Application::Grants() {
  return AskLeader<std::vector<core::GuestGrant>>([this] { return loop_->Grants(); });
}

absl::StatusOr<core::GuestAnswer> Application::AnswerGuest(const model::Pod& pod,
                                                           const std::string& reserved_on) {
  const absl::Status may = MayAnswer();
  if (!may.ok()) return may;
  return loop_->AskGuest(pod, reserved_on, Now());
}

absl::StatusOr<core::GuestAnswer> Application::AskGuest(const model::Pod& pod,
                                                        const std::string& reserved_on,
                                                        absl::Duration max_wait) {
  const absl::Duration until = ports_.clock->Steady() + max_wait;
  while (true) {
    absl::StatusOr<core::GuestAnswer> answer = AskLeader<core::GuestAnswer>(
        [this, pod, reserved_on] { return loop_->AskGuest(pod, reserved_on, Now()); });
    const bool decided = !answer.ok() || answer->kind != core::GuestAnswer::Kind::kUndecided;
    if (decided || ports_.clock->Steady() >= until) return answer;
    absl::SleepFor(kAskAgain);
  }
}

}  // namespace fairlead::cmd
