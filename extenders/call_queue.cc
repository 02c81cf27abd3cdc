#include "extenders/call_queue.h"

#include <utility>

#include "absl/status/status.h"

namespace fairlead::extenders {

void CallQueue::Post(Call call) {
  bool closed = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed = transport_ == nullptr;
    if (!closed) waiting_.push_back(std::move(call));
  }
  if (closed) return call.done(Closed());
  Launch();
}

void CallQueue::Close() {
  std::deque<Call> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    transport_ = nullptr;
    waiting.swap(waiting_);
  }
  for (const Call& call : waiting) call.done(Closed());
}

bool CallQueue::PopNext(Call& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.empty() || calls_ >= limits_.calls_max) return false;
  if (calls_ > 0 && bytes_ + waiting_.front().bytes > limits_.bytes_max) return false;
  call = std::move(waiting_.front());
  waiting_.pop_front();
  ++calls_;
  bytes_ += call.bytes;
  return true;
}

void CallQueue::Launch() {
  for (Call call; PopNext(call);) Send(std::exchange(call, Call()));
}

void CallQueue::Send(Call call) {
  kube::HttpRequest request;
  request.method = "POST";
  request.path = std::move(call.path);
  request.content_type = kube::kJson;
  request.traffic = traffic_;
  request.timeout = call.timeout;
  request.body = call.body();
  {
    // Under the lock: the transport lives until Close returns.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (transport_ != nullptr) {
      transport_->Send(std::move(request),
                       [self = shared_from_this(), bytes = call.bytes,
                        done = std::move(call.done)](absl::StatusOr<kube::HttpResponse> answer) {
                         {
                           const std::lock_guard<std::mutex> ended(self->mutex_);
                           --self->calls_;
                           self->bytes_ -= bytes;
                         }
                         self->Launch();
                         done(std::move(answer));
                       });
      return;
    }
    --calls_;
    bytes_ -= call.bytes;
  }
  call.done(Closed());
}

}  // namespace fairlead::extenders
