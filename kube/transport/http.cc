#include "kube/transport/http.h"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace fairlead::kube {

absl::StatusOr<HttpResponse> HttpTransport::Call(HttpRequest request) {
  // Shared with the callback, which may still be unlocking when this function has returned.
  struct Slot {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<absl::StatusOr<HttpResponse>> answer;
  };
  auto slot = std::make_shared<Slot>();
  Send(std::move(request), [slot](absl::StatusOr<HttpResponse> answer) {
    const std::lock_guard<std::mutex> lock(slot->mutex);
    slot->answer = std::move(answer);
    slot->arrived.notify_one();
  });
  std::unique_lock<std::mutex> lock(slot->mutex);
  while (!slot->answer.has_value()) {
    lock.unlock();
    const bool has_no_thread = RunWhileWaiting();
    lock.lock();
    if (!has_no_thread) slot->arrived.wait(lock, [&] { return slot->answer.has_value(); });
  }
  return *std::move(slot->answer);
}

}  // namespace fairlead::kube
