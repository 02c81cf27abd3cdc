// The outer half of the state machine: requests, waits and the public methods. reflector_answers.cc
// handles the answers.
#include "kube/watch/reflector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/transport/url.h"
#include "kube/watch/reflector_impl.h"

namespace fairlead::kube {

const char* ReflectorPhaseName(ReflectorPhase phase) {
  switch (phase) {
    case ReflectorPhase::kIdle:
      return "idle";
    case ReflectorPhase::kWatchList:
      return "watch-list";
    case ReflectorPhase::kList:
      return "list";
    case ReflectorPhase::kWatch:
      return "watch";
    case ReflectorPhase::kWaiting:
      return "waiting";
    case ReflectorPhase::kMissing:
      return "missing";
    case ReflectorPhase::kStopped:
      return "stopped";
  }
  return "?";
}

// Forwards a stream to the reflector, if that still exists and waits for it.
class Reflector::Impl::Observer final : public StreamObserver {
 public:
  Observer(std::weak_ptr<Impl> impl, uint64_t generation)
      : impl_(std::move(impl)), generation_(generation) {}

  void OnHeaders(int status, absl::string_view content_type) override {
    if (const auto impl = impl_.lock()) {
      impl->Enter(generation_, [&] { impl->OnHeaders(status, content_type); });
    }
  }
  void OnData(absl::string_view bytes) override {
    if (const auto impl = impl_.lock()) {
      impl->Enter(generation_, [&] { impl->OnData(bytes); });
    }
  }
  void OnDone(const absl::Status& status, absl::Duration retry_after) override {
    if (const auto impl = impl_.lock()) {
      impl->Enter(generation_, [&] { impl->OnStreamDone(status, retry_after); });
    }
  }

 private:
  std::weak_ptr<Impl> impl_;
  uint64_t generation_;
};

Reflector::Impl::Impl(HttpTransport& transport, Timers& timers, const Clock& clock,
                      EventQueue& queue, ServerFeatures& features, ReflectorOptions options)
    : transport_(transport),
      timers_(timers),
      clock_(clock),
      queue_(queue),
      features_(features),
      options_(std::move(options)),
      store_(options_.kind, options_.keeps),
      backoff_({options_.backoff_initial, options_.backoff_max}, options_.seed) {}

void Reflector::Impl::Enter(uint64_t generation, const std::function<void()>& step) {
  std::vector<HttpTransport::Id> to_cancel;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (generation != generation_ || phase_ == ReflectorPhase::kStopped) return;
    step();
    to_cancel.swap(to_cancel_);
  }
  for (const HttpTransport::Id id : to_cancel) transport_.Cancel(id);
}

void Reflector::Impl::Start() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ == ReflectorPhase::kIdle) Begin();
}

void Reflector::Impl::Stop() {
  std::vector<HttpTransport::Id> to_cancel;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Abandon();
    phase_ = ReflectorPhase::kStopped;
    to_cancel.swap(to_cancel_);
  }
  for (const HttpTransport::Id id : to_cancel) transport_.Cancel(id);
}

void Reflector::Impl::Refresh() {
  std::vector<HttpTransport::Id> to_cancel;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (phase_ == ReflectorPhase::kStopped) return;
    fresh_ = false;
    missing_answers_ = 0;
    if (phase_ == ReflectorPhase::kIdle) return;
    NeedSnapshot();
    continue_token_.clear();
    Begin();
    to_cancel.swap(to_cancel_);
  }
  for (const HttpTransport::Id id : to_cancel) transport_.Cancel(id);
}

bool Reflector::Impl::InStep() const {
  return phase_ == ReflectorPhase::kMissing ||
         (phase_ == ReflectorPhase::kWatch && stream_status_ == 200);
}

std::string Reflector::Impl::BasePath() const {
  std::string path = CollectionPath(options_.kind);
  const absl::string_view selector = model::TraitsOf(options_.kind).field_selector;
  if (!selector.empty()) AddQuery(path, "fieldSelector", selector);
  return path;
}

bool Reflector::Impl::UsesWatchList() const {
  return features_.watch_list.load(std::memory_order_relaxed) && unfinished_watch_lists_ < 2;
}

void Reflector::Impl::Begin() {
  if (!need_snapshot_) return OpenWatch();
  // A LIST that was interrupted between two pages continues from there.
  if (!continue_token_.empty()) return RequestPage();
  store_.BeginSnapshot();
  if (UsesWatchList()) return OpenWatchList();
  RequestPage();
}

void Reflector::Impl::OpenWatchList() {
  std::string path = BasePath();
  AddQuery(path, "watch", "1");
  AddQuery(path, "sendInitialEvents", "true");
  AddQuery(path, "resourceVersionMatch", "NotOlderThan");
  OpenStream(std::move(path), ReflectorPhase::kWatchList);
}

void Reflector::Impl::OpenWatch() {
  std::string path = BasePath();
  AddQuery(path, "watch", "1");
  AddQuery(path, "resourceVersion", store_.resource_version());
  OpenStream(std::move(path), ReflectorPhase::kWatch);
}

void Reflector::Impl::OpenStream(std::string path, ReflectorPhase phase) {
  Abandon();
  phase_ = phase;
  stream_status_ = 0;
  stream_content_type_.clear();
  error_body_.clear();
  decoder_.reset();
  delivered_ = false;
  last_activity_ = clock_.Steady();
  const absl::Duration watch_time = JitteredBetween(options_.min_watch, options_.max_watch,
                                                    options_.seed, static_cast<uint64_t>(watches_));
  ++watches_;
  AddQuery(path, "allowWatchBookmarks", "true");
  AddQuery(path, "timeoutSeconds", absl::StrCat(absl::ToInt64Seconds(watch_time)));

  HttpRequest request;
  request.path = std::move(path);
  request.accept = HasProtobuf(options_.kind) ? absl::StrCat(kProtobuf, ", ", kJson) : kJson;
  request.traffic = TrafficClass::kWatch;
  request.timeout = absl::InfiniteDuration();
  request_ = transport_.Stream(std::move(request),
                               std::make_shared<Observer>(weak_from_this(), generation_));
  ArmWatchdog(options_.header_limit);
}

void Reflector::Impl::ArmWatchdog(absl::Duration delay) {
  timer_ = timers_.After(delay, [weak = weak_from_this(), generation = generation_] {
    if (const auto impl = weak.lock()) impl->Enter(generation, [&] { impl->OnWatchdog(); });
  });
}

void Reflector::Impl::RequestPage() {
  Abandon();
  phase_ = ReflectorPhase::kList;
  std::string path = BasePath();
  if (list_restarts_ < 2) AddQuery(path, "limit", absl::StrCat(options_.page_size));
  if (!continue_token_.empty()) AddQuery(path, "continue", continue_token_);
  HttpRequest request;
  request.path = std::move(path);
  request.accept = HasProtobuf(options_.kind) ? absl::StrCat(kProtobuf, ", ", kJson) : kJson;
  request.traffic = TrafficClass::kRead;
  request.timeout = options_.list_timeout;
  request_ = transport_.Send(
      std::move(request),
      [weak = weak_from_this(), generation = generation_](absl::StatusOr<HttpResponse> response) {
        const auto impl = weak.lock();
        if (impl) impl->Enter(generation, [&] { impl->OnPage(std::move(response)); });
      });
}

void Reflector::Impl::Wait(absl::Duration at_least) {
  WaitFor(std::max(backoff_.Next(), at_least), ReflectorPhase::kWaiting);
}

void Reflector::Impl::WaitFor(absl::Duration delay, ReflectorPhase phase) {
  Abandon();
  phase_ = phase;
  timer_ = timers_.After(delay, [weak = weak_from_this(), generation = generation_] {
    if (const auto impl = weak.lock()) impl->Enter(generation, [&] { impl->Begin(); });
  });
}

void Reflector::Impl::Abandon() {
  ++generation_;
  if (InStep()) last_open_ = clock_.Steady();
  if (request_.has_value()) to_cancel_.push_back(*request_);
  request_.reset();
  if (timer_.has_value()) timers_.CancelTimer(*timer_);
  timer_.reset();
}

ReflectorStats Reflector::Impl::GetStats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  ReflectorStats stats;
  stats.kind = options_.kind;
  stats.phase = phase_;
  stats.synced = synced_;
  stats.missing = missing_;
  stats.objects = store_.size();
  stats.resource_version = store_.resource_version();
  stats.snapshots = snapshots_;
  stats.watches = watches_;
  stats.events = events_;
  stats.errors = errors_;
  stats.last_error = last_error_;
  stats.since_last_event = clock_.Steady() - last_event_;
  stats.down_for = InStep() ? absl::ZeroDuration() : clock_.Steady() - last_open_;
  stats.fresh = fresh_;
  return stats;
}

Reflector::Reflector(HttpTransport& transport, Timers& timers, const Clock& clock,
                     EventQueue& queue, ServerFeatures& features, ReflectorOptions options)
    : impl_(std::make_shared<Impl>(transport, timers, clock, queue, features, std::move(options))) {
}
Reflector::~Reflector() { impl_->Stop(); }
void Reflector::Start() { impl_->Start(); }
void Reflector::Stop() { impl_->Stop(); }
void Reflector::Refresh() { impl_->Refresh(); }
ReflectorStats Reflector::GetStats() const { return impl_->GetStats(); }

}  // namespace fairlead::kube
