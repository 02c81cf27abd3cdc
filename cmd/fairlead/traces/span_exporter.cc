#include "cmd/fairlead/traces/span_exporter.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "kube/transport/backoff.h"
#include "tracing/otlp_answer.h"

namespace fairlead::cmd {

class SpanExporter::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(kube::HttpTransport& transport, kube::Timers& timers, const Clock& clock,
       SpanExporterOptions options, Tell tell)
      : transport_(transport),
        timers_(timers),
        clock_(clock),
        options_(std::move(options)),
        tell_(std::move(tell)),
        backoff_(options_.pauses, options_.seed) {}

  void Add(tracing::Span span) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ == State::kOver) {
      ++stats_.dropped;
      return;
    }
    queue_.push_back(std::move(span));
    if (queue_.size() > options_.queue_max) {
      queue_.pop_front();
      ++stats_.dropped;
    }
    if (state_ == State::kIdle) {
      Schedule(State::kGathering, options_.gather);
    } else if (state_ == State::kGathering && !at_once_ && queue_.size() >= options_.batch_max) {
      Schedule(State::kGathering, absl::ZeroDuration());
    }
  }

  bool Stop(absl::Duration max_wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t lost_before = stats_.failed + stats_.dropped;
    stopping_ = true;
    const bool may_send = state_ != State::kPausing || !asked_to_pause_;
    if (may_send && (state_ == State::kGathering || state_ == State::kPausing)) {
      Schedule(State::kGathering, absl::ZeroDuration());
    }
    if (may_send) {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(max_wait),
                        [this] { return state_ == State::kIdle || state_ == State::kOver; });
    }
    lock.unlock();
    Close();
    lock.lock();
    return stats_.failed + stats_.dropped == lost_before;
  }

  void Close() {
    std::unique_lock<std::mutex> lock(mutex_);
    End();
    const kube::HttpTransport::Id call = std::exchange(call_, 0);
    lock.unlock();
    if (call != 0) transport_.Cancel(call);
  }

  SpanStats GetStats() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  enum class State : uint8_t {
    kIdle,       // nothing waits
    kGathering,  // a timer runs, then a batch is sent
    kSending,    // a request is under way
    kPausing,    // a timer runs, then batch_ is sent, or the next one
    kOver,
  };

  // The following expect the lock.

  // A timer that was scheduled before does nothing any more.
  void Schedule(State state, absl::Duration delay) {
    state_ = state;
    at_once_ = delay == absl::ZeroDuration();
    const uint64_t turn = ++turn_;
    timers_.After(delay, [weak = weak_from_this(), turn] {
      if (const auto self = weak.lock(); self != nullptr) self->OnTimer(turn);
    });
  }

  void Rest(State state) {
    state_ = state;
    changed_.notify_all();
  }

  // Nothing is sent any more. What was sent and has no answer counts as failed: it may have
  // arrived.
  void End() {
    if (state_ == State::kOver) return;
    int64_t& batch = state_ == State::kSending ? stats_.failed : stats_.dropped;
    batch += static_cast<int64_t>(std::exchange(batch_size_, 0));
    stats_.dropped += static_cast<int64_t>(queue_.size());
    queue_.clear();
    ++turn_;
    Rest(State::kOver);
  }

  // After an answer. `pause`: zero after a success.
  void GoOn(absl::Duration pause) {
    if (stopping_) pause = absl::ZeroDuration();
    if (pause > absl::ZeroDuration()) {
      Schedule(State::kPausing, pause);  // also if nothing waits: what comes meanwhile has to
    } else if (queue_.empty()) {
      Rest(State::kIdle);
    } else {
      const bool now = stopping_ || queue_.size() >= options_.batch_max;
      Schedule(State::kGathering, now ? absl::ZeroDuration() : options_.gather);
    }
  }

  // How long to wait after a failure.
  absl::Duration PauseAfter(absl::Duration retry_after) {
    asked_to_pause_ = retry_after > absl::ZeroDuration();
    return std::min(options_.longest_wait, std::max(retry_after, backoff_.Next()));
  }

  // What is to be told without the lock; none: nothing new.
  std::optional<std::string> News(std::string problem) {
    if (problem == told_) return std::nullopt;
    told_ = problem;
    return problem;
  }

  // The following take the lock, but for Take.

  void OnTimer(uint64_t turn) {
    std::vector<tracing::Span> spans;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (turn != turn_) return;
      if (batch_size_ == 0) {
        const size_t count = std::min(queue_.size(), options_.batch_max);
        if (count == 0) return Rest(State::kIdle);
        const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
        spans.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
        queue_.erase(queue_.begin(), end);
        batch_size_ = count;
        tried_since_ = clock_.Steady();
      }
      state_ = State::kSending;
    }
    // Without the lock, so that Add does not wait for it. batch_ is the I/O thread's.
    if (!spans.empty()) batch_ = tracing::EncodeTraces(options_.resource, spans);
    Send(turn);
  }

  void Send(uint64_t turn) {
    kube::HttpRequest request;
    request.method = "POST";
    request.path = tracing::kTracesPath;
    request.content_type = kube::kJson;
    request.body = batch_;
    request.traffic = kube::TrafficClass::kWrite;
    request.timeout = options_.timeout;
    const kube::HttpTransport::Id call = transport_.Send(
        std::move(request),
        [weak = weak_from_this(), turn](const absl::StatusOr<kube::HttpResponse>& answer) {
          if (const auto self = weak.lock(); self != nullptr) self->OnAnswer(turn, answer);
        });
    std::unique_lock<std::mutex> lock(mutex_);
    if (turn == turn_) {
      call_ = call;
      return;
    }
    lock.unlock();
    transport_.Cancel(call);  // stopped meanwhile
  }

  void OnAnswer(uint64_t turn, const absl::StatusOr<kube::HttpResponse>& response) {
    tracing::ExportAnswer answer;
    std::optional<std::string> news;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (turn != turn_) return;
      call_ = 0;
      if (response.ok()) {
        answer = tracing::ReadExportAnswer(response->status, response->body, batch_size_);
      } else {
        answer.kind = tracing::ExportAnswer::Kind::kRetry;
        answer.problem = std::string(response.status().message());
      }
      news = News(answer.problem);
      Take(answer, response.ok() ? response->retry_after : absl::ZeroDuration());
    }
    if (news.has_value() && tell_) tell_(*news);
  }

  void Take(const tracing::ExportAnswer& answer, absl::Duration retry_after) {
    using Kind = tracing::ExportAnswer::Kind;
    if (answer.kind == Kind::kAccepted) {
      backoff_.Reset();
      stats_.sent += static_cast<int64_t>(batch_size_ - answer.rejected);
      stats_.failed += static_cast<int64_t>(answer.rejected);
      batch_size_ = 0;
      return GoOn(absl::ZeroDuration());
    }
    const bool late = clock_.Steady() - tried_since_ >= options_.retry_for;
    if (answer.kind == Kind::kRefused || stopping_ || late) {
      stats_.failed += static_cast<int64_t>(batch_size_);
      batch_size_ = 0;
    }
    // At the end a collector that has no time is not asked again.
    if (stopping_ && answer.kind == Kind::kRetry) return End();
    GoOn(PauseAfter(retry_after));
  }

  kube::HttpTransport& transport_;
  kube::Timers& timers_;
  const Clock& clock_;
  const SpanExporterOptions options_;
  const Tell tell_;
  std::string batch_;  // the I/O thread's alone: the body of a batch

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  State state_ = State::kIdle;
  uint64_t turn_ = 0;     // of the last timer; callbacks of former ones are ignored
  bool at_once_ = false;  // that timer has no delay
  kube::HttpTransport::Id call_ = 0;
  std::deque<tracing::Span> queue_;
  size_t batch_size_ = 0;       // spans in batch_ that are not done with
  absl::Duration tried_since_;  // steady: the first attempt at the batch
  kube::JitteredBackoff backoff_;
  bool asked_to_pause_ = false;  // kPausing, because the collector said so
  bool stopping_ = false;
  std::string told_;  // the problem that was told last
  SpanStats stats_;
};

SpanExporter::SpanExporter(kube::HttpTransport& transport, kube::Timers& timers, const Clock& clock,
                           SpanExporterOptions options, Tell tell)
    : impl_(std::make_shared<Impl>(transport, timers, clock, std::move(options), std::move(tell))) {
}

SpanExporter::~SpanExporter() { impl_->Close(); }

void SpanExporter::Add(tracing::Span span) { impl_->Add(std::move(span)); }

bool SpanExporter::Stop(absl::Duration max_wait) { return impl_->Stop(max_wait); }

SpanStats SpanExporter::GetStats() const { return impl_->GetStats(); }

}  // namespace fairlead::cmd
