// What another scheduler asks about a pod of its own, from a thread of the server.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "cmd/fairlead/app.h"

namespace fairlead::cmd {
namespace {

// The owner's thread answers between two decisions, of which the longest takes seconds.
constexpr absl::Duration kOwnerWait = absl::Seconds(4);
constexpr absl::Duration kAskAgain = absl::Milliseconds(10);

struct Asked {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<absl::StatusOr<core::GuestAnswer>> answer;
};

}  // namespace

absl::StatusOr<core::GuestAnswer> Application::AskGuestOnce(const model::Pod& pod) {
  const auto asked = std::make_shared<Asked>();
  Post([this, asked, pod] {
    absl::StatusOr<core::GuestAnswer> answer =
        absl::UnavailableError("this Fairlead does not lead, or has not read all objects yet");
    if (was_leader_ && !lost_ && !reading_ && loop_->synced()) {
      answer = loop_->AskGuest(pod, Now());
    }
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

absl::StatusOr<core::GuestAnswer> Application::AskGuest(const model::Pod& pod,
                                                        absl::Duration max_wait) {
  const absl::Duration until = ports_.clock->Steady() + max_wait;
  while (true) {
    absl::StatusOr<core::GuestAnswer> answer = AskGuestOnce(pod);
    const bool decided = !answer.ok() || answer->kind != core::GuestAnswer::Kind::kUndecided;
    if (decided || ports_.clock->Steady() >= until) return answer;
    absl::SleepFor(kAskAgain);
  }
}

}  // namespace fairlead::cmd
