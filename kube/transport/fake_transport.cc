#include "kube/transport/fake_transport.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"

namespace fairlead::kube {
namespace {

// More callbacks than any test needs in one Pump: a timer that rearms itself without delay.
constexpr size_t kMaxCallbacks = 10'000'000;

bool Matches(const HttpRequest& request, absl::string_view method, absl::string_view path) {
  if (request.method != method) return false;
  absl::string_view sent = request.path;
  sent = sent.substr(0, sent.find('?'));
  if (absl::ConsumeSuffix(&path, "*")) return absl::StartsWith(sent, path);
  return sent == path;
}

}  // namespace

FakeTransport::Reply FakeTransport::Reply::Json(int status, std::string body) {
  Reply reply;
  reply.response.status = status;
  reply.response.content_type = kJson;
  reply.response.body = std::move(body);
  return reply;
}

FakeTransport::Reply FakeTransport::Reply::Protobuf(int status, std::string body) {
  Reply reply = Json(status, std::move(body));
  reply.response.content_type = kProtobuf;
  return reply;
}

FakeTransport::Reply FakeTransport::Reply::Failure(absl::Status status) {
  Reply reply;
  reply.failure = std::move(status);
  return reply;
}

FakeTransport::Reply FakeTransport::Reply::Hold() {
  Reply reply;
  reply.hold = true;
  return reply;
}

FakeTransport::Reply FakeTransport::Reply::Watch(std::string content_type) {
  Reply reply = Json(200, "");
  reply.response.content_type = std::move(content_type);
  reply.keep_open = true;
  return reply;
}

void FakeTransport::On(std::string method, std::string path, Handler handler, int times) {
  When([method = std::move(method), path = std::move(path)](
           const HttpRequest& request) { return Matches(request, method, path); },
       std::move(handler), times);
}

void FakeTransport::On(std::string method, std::string path, Reply reply, int times) {
  On(
      std::move(method), std::move(path),
      [reply = std::move(reply)](const HttpRequest&) { return reply; }, times);
}

void FakeTransport::When(Predicate predicate, Handler handler, int times) {
  scripts_.push_back({std::move(predicate), std::move(handler), times});
}

void FakeTransport::Respond(Id id, HttpResponse response) {
  queue_.push_back([this, id, response = std::move(response)]() mutable {
    Reply reply;
    reply.response = std::move(response);
    Apply(id, reply);
  });
}

void FakeTransport::Fail(Id id, absl::Status status) {
  FAIRLEAD_CHECK(!status.ok(), "a failure needs a reason");
  queue_.push_back([this, id, status = std::move(status)] { Finish(id, status); });
}

void FakeTransport::Headers(Id id, int status, std::string content_type) {
  queue_.push_back([this, id, status, content_type = std::move(content_type)] {
    auto it = open_.find(id);
    if (it != open_.end()) DeliverHeaders(it->second, status, content_type);
  });
}

void FakeTransport::Data(Id id, std::string bytes) {
  queue_.push_back([this, id, bytes = std::move(bytes)] {
    auto it = open_.find(id);
    if (it == open_.end()) return;
    FAIRLEAD_CHECK(it->second.observer != nullptr && it->second.headers_sent,
                   "data belongs to a stream that has its headers");
    const auto observer = it->second.observer;
    observer->OnData(bytes);
  });
}

void FakeTransport::End(Id id, absl::Status status, absl::Duration retry_after) {
  queue_.push_back([this, id, status = std::move(status), retry_after] {
    if (!status.ok()) return Finish(id, status);
    HttpResponse end;
    end.retry_after = retry_after;
    Finish(id, std::move(end));
  });
}

void FakeTransport::CancelAll() {
  for (const auto& [id, open] : open_) Cancel(id);
}

size_t FakeTransport::Pump() {
  FAIRLEAD_CHECK(!pumping_, "a callback must not pump");
  pumping_ = true;
  size_t count = 0;
  for (;;) {
    FAIRLEAD_CHECK(count < kMaxCallbacks, "the code under test never comes to rest");
    if (!queue_.empty()) {
      const auto next = std::move(queue_.front());
      queue_.pop_front();
      next();
    } else if (!RunOneTimer()) {
      QueueTimeouts();
      if (queue_.empty()) break;
      continue;
    }
    ++count;
  }
  pumping_ = false;
  return count;
}

void FakeTransport::Advance(absl::Duration by) {
  const absl::Duration target = clock_.Steady() + by;
  Pump();
  for (;;) {
    const absl::Duration due = NextDue();
    if (due > target) break;
    clock_.Advance(due - clock_.Steady());
    Pump();
  }
  if (target > clock_.Steady()) clock_.Advance(target - clock_.Steady());
}

absl::Duration FakeTransport::UntilNextTimer() const {
  return std::max(absl::ZeroDuration(), NextDue() - clock_.Steady());
}

std::vector<const FakeTransport::Exchange*> FakeTransport::Sent(absl::string_view method,
                                                                absl::string_view path) const {
  std::vector<const Exchange*> found;
  for (const Exchange& exchange : exchanges_) {
    if (Matches(exchange.request, method, path)) found.push_back(&exchange);
  }
  return found;
}

std::optional<FakeTransport::Id> FakeTransport::FindOpen(absl::string_view method,
                                                         absl::string_view path) const {
  for (const auto& [id, open] : open_) {
    if (Matches(exchanges_[open.exchange].request, method, path)) return id;
  }
  return std::nullopt;
}

FakeTransport::Id FakeTransport::Send(HttpRequest request, Done done) {
  Open open;
  open.done = std::move(done);
  return Start(std::move(request), /*stream=*/false, std::move(open));
}

FakeTransport::Id FakeTransport::Stream(HttpRequest request,
                                        std::shared_ptr<StreamObserver> observer) {
  Open open;
  open.observer = std::move(observer);
  return Start(std::move(request), /*stream=*/true, std::move(open));
}

FakeTransport::Id FakeTransport::Start(HttpRequest request, bool stream, Open open) {
  const Id id = ++last_id_;
  open.exchange = exchanges_.size();
  open.deadline = clock_.Steady() + request.timeout;
  Exchange exchange;
  exchange.id = id;
  exchange.request = std::move(request);
  exchange.stream = stream;
  exchange.sent_at = clock_.Steady();
  exchanges_.push_back(std::move(exchange));
  open_.emplace(id, std::move(open));
  queue_.push_back([this, id] { RunScripts(id); });
  return id;
}

void FakeTransport::Cancel(Id id) {
  auto it = open_.find(id);
  if (it == open_.end()) return;
  exchanges_[it->second.exchange].cancelled = true;
  // Ahead of answers that are queued already: the harsher of the two permitted orders.
  queue_.push_front([this, id] { Finish(id, absl::CancelledError("the call was cancelled")); });
}

FakeTransport::Id FakeTransport::After(absl::Duration delay, std::function<void()> callback) {
  const Id id = ++last_id_;
  const absl::Duration due = clock_.Steady() + std::max(delay, absl::ZeroDuration());
  timers_.emplace(TimerKey(due, id), std::move(callback));
  return id;
}

void FakeTransport::CancelTimer(Id id) {
  for (auto it = timers_.begin(); it != timers_.end(); ++it) {
    if (it->first.second != id) continue;
    timers_.erase(it);
    return;
  }
}

bool FakeTransport::RunWhileWaiting() {
  if (Pump() > 0) return true;
  const absl::Duration until = UntilNextTimer();
  FAIRLEAD_CHECK(until < absl::InfiniteDuration(),
                 "Call waits for an answer that no script gives, without a time-out");
  Advance(until);
  return true;
}

void FakeTransport::RunScripts(Id id) {
  auto it = open_.find(id);
  if (it == open_.end()) return;
  const HttpRequest& request = exchanges_[it->second.exchange].request;
  for (size_t i = scripts_.size(); i-- > 0;) {
    if (scripts_[i].times == 0 || !scripts_[i].predicate(request)) continue;
    if (scripts_[i].times > 0) --scripts_[i].times;
    const Handler handler = scripts_[i].handler;
    return Apply(id, handler(request));
  }
}

void FakeTransport::Apply(Id id, const Reply& reply) {
  if (reply.hold) return;
  if (!reply.failure.ok()) return Finish(id, reply.failure);
  auto it = open_.find(id);
  if (it == open_.end()) return;
  FAIRLEAD_CHECK(reply.response.status != 0, "an answer needs a status");
  const auto observer = it->second.observer;
  if (observer == nullptr) return Finish(id, reply.response);
  DeliverHeaders(it->second, reply.response.status, reply.response.content_type);
  // Queued separately, so that a Cancel from OnHeaders overtakes it.
  if (!reply.response.body.empty()) Data(id, reply.response.body);
  if (!reply.keep_open) End(id, absl::OkStatus(), reply.response.retry_after);
}

void FakeTransport::DeliverHeaders(Open& open, int status, const std::string& content_type) {
  FAIRLEAD_CHECK(open.observer != nullptr && !open.headers_sent,
                 "headers belong to a stream, once");
  open.headers_sent = true;
  const auto observer = open.observer;
  observer->OnHeaders(status, content_type);
}

void FakeTransport::Finish(Id id, absl::StatusOr<HttpResponse> answer) {
  auto it = open_.find(id);
  if (it == open_.end()) return;
  const Open open = std::move(it->second);
  open_.erase(it);
  exchanges_[open.exchange].done = true;
  if (open.observer == nullptr) {
    open.done(std::move(answer));
  } else if (answer.ok()) {
    open.observer->OnDone(absl::OkStatus(), answer->retry_after);
  } else {
    open.observer->OnDone(answer.status(), absl::ZeroDuration());
  }
}

bool FakeTransport::RunOneTimer() {
  auto it = timers_.begin();
  if (it == timers_.end() || it->first.first > clock_.Steady()) return false;
  const auto callback = std::move(it->second);
  timers_.erase(it);
  callback();
  return true;
}

void FakeTransport::QueueTimeouts() {
  for (const auto& [id, open] : open_) {
    if (open.deadline > clock_.Steady()) continue;
    const HttpRequest& request = exchanges_[open.exchange].request;
    Fail(id, absl::DeadlineExceededError(absl::StrCat(request.method, " ", request.path,
                                                      ": no answer within ",
                                                      absl::FormatDuration(request.timeout))));
  }
}

absl::Duration FakeTransport::NextDue() const {
  absl::Duration due = absl::InfiniteDuration();
  if (!timers_.empty()) due = timers_.begin()->first.first;
  for (const auto& [id, open] : open_) due = std::min(due, open.deadline);
  return due;
}

}  // namespace fairlead::kube
