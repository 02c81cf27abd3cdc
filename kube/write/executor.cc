#include "kube/write/executor.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fairlead::kube {

void LatencyHistogram::Add(absl::Duration latency) {
  size_t bucket = 0;
  absl::Duration bound = absl::Milliseconds(1);
  while (bucket + 1 < counts.size() && latency >= bound) {
    ++bucket;
    bound *= 2;
  }
  ++counts[bucket];
  sum += latency;
}

int64_t LatencyHistogram::total() const {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  return total;
}

namespace {

// By a timer of its own; the others are looked at when their turn comes.
bool EndsByTimer(WriteLane lane) { return lane == WriteLane::kEvict || lane == WriteLane::kNode; }

}  // namespace

class Executor::Impl : public std::enable_shared_from_this<Executor::Impl> {
 public:
  Impl(HttpTransport& transport, Timers& timers, const Clock& clock, EventQueue& results,
       ExecutorOptions options, Provider provider, Gate may_write)
      : transport_(transport),
        timers_(timers),
        clock_(clock),
        results_(results),
        options_(std::move(options)),
        provider_(std::move(provider)),
        may_write_(std::move(may_write)),
        window_(options_.window) {}

  void Submit(const model::Action& action);
  void Poke();
  void BeginDrain();
  void Abandon();
  bool Idle() const;
  bool Drain(absl::Duration timeout);
  void Stop();
  ExecutorStats GetStats() const;

 private:
  struct Outgoing {
    uint64_t action_id;
    HttpRequest request;
  };
  using Requests = std::vector<Outgoing>;

  // These methods run under the lock; requests are sent after it is released.
  void StartEvent(WriteJob job, const model::EmitEvent& event);
  // Does what `observed` says; `job` is the write of the record, if there is to be one now.
  void TakeObserved(WriteJob job, const EventSeries::Observed& observed);
  void LookAtEvent(const EventRecordPtr& record);
  bool Refused(const model::Action& action, WriteLane lane);
  void Pump(Requests& out);
  void StartRequest(WriteJob& job, Requests& out);
  void TakeAnswer(uint64_t action_id, const absl::StatusOr<HttpResponse>& answer, Requests& out);
  void RetryLater(WriteJob& job, absl::Duration at_least);
  void ArmResume();
  void ArmExpiry(std::string object, uint64_t action_id);
  static bool HasWaitedTooLong(const WriteJob& job, absl::Duration now);
  // Answers a job that was taken out of the queue before its first request.
  void AnswerLate(const WriteJob& job);
  void Answer(uint64_t action_id, absl::Status status, std::string resource_version = {});
  void Finish(WriteJob& job, Decision decision);
  // Counts and answers what is done.
  void AnswerFor(const WriteJob& job, Decision decision);
  void Drop(bool on_wire_too, absl::string_view why);
  bool MayWrite() const { return !abandoned_ && (!may_write_ || may_write_()); }
  int ReservedFrom(WriteLane lane) const;
  int AttemptsOf(const WriteJob& job) const;

  // Without the lock.
  void SendAll(Requests requests);

  HttpTransport& transport_;
  Timers& timers_;
  const Clock& clock_;
  EventQueue& results_;
  const ExecutorOptions options_;
  const Provider provider_;
  const Gate may_write_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  WriteWindow window_;
  WriteQueue queue_;
  EventSeries series_;
  uint64_t own_writes_ = 0;  // that no action asked for
  bool draining_ = false, abandoned_ = false, stopped_ = false;
  std::optional<Timers::Id> resume_timer_;
  ExecutorStats stats_;  // the counters of it
};

int Executor::Impl::ReservedFrom(WriteLane lane) const {
  switch (lane) {
    case WriteLane::kBind:
      return 0;
    case WriteLane::kEvict:
    case WriteLane::kNode:
      return window_.size() / 8;
    case WriteLane::kStatus:
      return window_.size() / 4;
    case WriteLane::kEvent:
      return window_.size() / 2;
  }
  return 0;
}

void Executor::Impl::Answer(uint64_t action_id, absl::Status status, std::string resource_version) {
  results_.Push(model::ActionResult{action_id, std::move(status), std::move(resource_version)});
}

bool Executor::Impl::Refused(const model::Action& action, WriteLane lane) {
  if (stopped_ || draining_) {
    Answer(action.id, absl::AbortedError("the executor is shutting down"));
    return true;
  }
  if (!MayWrite()) {
    ++stats_.fenced;
    Answer(action.id, absl::AbortedError("not the leader"));
    return true;
  }
  const size_t limit = lane == WriteLane::kEvent ? options_.max_queued_events : options_.max_queued;
  if (queue_.size(lane) >= limit) {
    ++stats_.shed;
    if (lane == WriteLane::kEvent) ++stats_.shed_events;
    Answer(action.id, absl::ResourceExhaustedError(absl::StrCat("more than ", limit, " queued ",
                                                                WriteLaneName(lane), " writes")));
    return true;
  }
  return false;
}

void Executor::Impl::Submit(const model::Action& action) {
  const WriteLane lane = LaneOf(action);
  WriteJob job;
  job.action_id = action.id;
  job.lane = lane;
  const bool verdict = std::holds_alternative<model::SetPodUnschedulable>(action.what);
  job.replaceable = verdict || std::holds_alternative<model::NominateNode>(action.what);
  // A bound pod needs no reason for waiting.
  job.replaces = verdict || std::holds_alternative<model::BindPod>(action.what);
  job.decides_anew = std::holds_alternative<model::EvictPod>(action.what) ||
                     std::holds_alternative<model::CreateNodeRequest>(action.what);
  job.protocol = MakeWriteProtocol(action);
  job.backoff = JitteredBackoff({options_.backoff_initial, options_.backoff_max}, action.id);
  job.submitted_at = clock_.Steady();
  const auto* const event = std::get_if<model::EmitEvent>(&action.what);
  const bool for_provider = job.protocol == nullptr && event == nullptr;
  bool refused = false;
  Requests out;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    refused = Refused(action, lane);
    if (!refused && for_provider && !provider_) {
      Answer(action.id, absl::UnimplementedError("no provider of nodes is configured"));
    } else if (!refused && event != nullptr) {
      StartEvent(std::move(job), *event);
    } else if (!refused && !for_provider) {
      std::string object = WrittenObject(action);
      const bool binds = std::holds_alternative<model::BindPod>(action.what);
      const auto replaced = queue_.Add(object, std::move(job));
      if (EndsByTimer(lane)) ArmExpiry(std::move(object), action.id);
      if (replaced.has_value()) {
        ++stats_.replaced;
        Answer(*replaced,
               binds ? absl::CancelledError("the pod's binding overtook it") : absl::OkStatus());
      }
    }
    if (!stopped_) Pump(out);  // a closed gate also answers queued actions
  }
  SendAll(std::move(out));
  if (!refused && for_provider && provider_) provider_(action);
}

void Executor::Impl::StartEvent(WriteJob job, const model::EmitEvent& event) {
  const EventSeries::Observed observed = series_.Observe(event, clock_.Now(), clock_.Steady());
  // What is counted needs no write of its own.
  if (!observed.write) Answer(job.action_id, absl::OkStatus());
  TakeObserved(std::move(job), observed);
}

void Executor::Impl::TakeObserved(WriteJob job, const EventSeries::Observed& observed) {
  if (observed.write) {
    job.protocol = MakeEventProtocol(observed.record, options_.identity, clock_);
    queue_.Add(WrittenObject({0, observed.record->event}), std::move(job));
  }
  if (observed.look_after <= absl::ZeroDuration()) return;
  const std::weak_ptr<EventRecord> looked_at = observed.record;
  timers_.After(observed.look_after, [weak = weak_from_this(), looked_at] {
    const auto impl = weak.lock();
    if (!impl) return;
    Requests out;
    {
      std::lock_guard<std::mutex> lock(impl->mutex_);
      const EventRecordPtr record = looked_at.lock();
      if (record == nullptr || impl->stopped_) return;
      impl->LookAtEvent(record);
      impl->Pump(out);
    }
    impl->SendAll(std::move(out));
  });
}

// What was counted is told. A process that may not write forgets it: its successor counts anew.
void Executor::Impl::LookAtEvent(const EventRecordPtr& record) {
  EventSeries::Observed observed = EventSeries::Look(record, clock_.Steady());
  if (observed.write &&
      (draining_ || !MayWrite() || queue_.size(WriteLane::kEvent) >= options_.max_queued_events)) {
    return;
  }
  constexpr uint64_t kOwnWrites = uint64_t{1} << 63;  // ids of actions count from 1
  WriteJob job;
  job.action_id = kOwnWrites + ++own_writes_;
  job.lane = WriteLane::kEvent;
  job.answered = true;  // no action waits for it
  job.backoff = JitteredBackoff({options_.backoff_initial, options_.backoff_max}, job.action_id);
  job.submitted_at = clock_.Steady();
  TakeObserved(std::move(job), observed);
}

void Executor::Impl::SendAll(Requests requests) {
  for (Outgoing& outgoing : requests) {
    transport_.Send(std::move(outgoing.request), [weak = weak_from_this(), id = outgoing.action_id](
                                                     const absl::StatusOr<HttpResponse>& answer) {
      const auto impl = weak.lock();
      if (!impl) return;
      Requests more;
      {
        std::lock_guard<std::mutex> lock(impl->mutex_);
        if (!impl->stopped_) impl->TakeAnswer(id, answer, more);
      }
      impl->SendAll(std::move(more));
    });
  }
}

void Executor::Impl::Pump(Requests& out) {
  if (!queue_.empty() && !MayWrite()) Drop(/*on_wire_too=*/false, "not the leader");
  const absl::Duration now = clock_.Steady();
  for (int i = 0; i < kWriteLanes; ++i) {
    const auto lane = static_cast<WriteLane>(i);
    while (window_.MayStart(now, ReservedFrom(lane))) {
      WriteJob* job = queue_.Start(lane);
      if (job == nullptr) break;
      if (HasWaitedTooLong(*job, now)) {
        AnswerLate(queue_.Finish(job->action_id));
      } else {
        StartRequest(*job, out);
      }
    }
  }
  if (queue_.empty()) idle_.notify_all();
  ArmResume();
}

void Executor::Impl::ArmResume() {
  const absl::Duration pause = window_.paused_until() - clock_.Steady();
  if (pause <= absl::ZeroDuration() || resume_timer_.has_value() || !queue_.HasReady()) return;
  resume_timer_ = timers_.After(pause, [weak = weak_from_this()] {
    const auto impl = weak.lock();
    if (!impl) return;
    Requests out;
    {
      std::lock_guard<std::mutex> lock(impl->mutex_);
      impl->resume_timer_.reset();
      if (!impl->stopped_) impl->Pump(out);
    }
    impl->SendAll(std::move(out));
  });
}

// If the action waits for a place, for Retry-After or behind another write of its object.
void Executor::Impl::ArmExpiry(std::string object, uint64_t action_id) {
  timers_.After(kFreshFor, [weak = weak_from_this(), object = std::move(object), action_id] {
    const auto impl = weak.lock();
    if (!impl) return;
    std::lock_guard<std::mutex> lock(impl->mutex_);
    const std::optional<WriteJob> job = impl->queue_.Withdraw(object, action_id);
    if (!job.has_value()) return;
    impl->AnswerLate(*job);
    if (impl->queue_.empty()) impl->idle_.notify_all();
  });
}

bool Executor::Impl::HasWaitedTooLong(const WriteJob& job, absl::Duration now) {
  return job.lane != WriteLane::kEvent && job.attempts == 0 && now - job.submitted_at > kQueuedFor;
}

void Executor::Impl::AnswerLate(const WriteJob& job) {
  ++stats_.expired;
  ++stats_.answered[static_cast<size_t>(job.lane)];
  ++stats_.failed[static_cast<size_t>(job.lane)];
  constexpr absl::string_view kLate = "it could not be sent in time";
  if (!EndsByTimer(job.lane)) {
    Answer(job.action_id, absl::CancelledError(kLate));
  } else {
    Answer(job.action_id,
           job.decides_anew ? absl::UnavailableError(kLate) : absl::AbortedError(kLate));
  }
}

void Executor::Impl::StartRequest(WriteJob& job, Requests& out) {
  job.on_wire = true;
  ++job.attempts;
  job.sent_at = clock_.Steady();
  window_.Started();
  HttpRequest request = job.protocol->Next(clock_.Now());
  request.timeout = options_.request_timeout;
  // Leadership may end between the gate and here: then the request ends at once.
  if (options_.time_left) request.timeout = std::min(request.timeout, options_.time_left());
  ++stats_.requests_by_verb[request.method];
  out.push_back({job.action_id, std::move(request)});
}

void Executor::Impl::TakeAnswer(uint64_t action_id, const absl::StatusOr<HttpResponse>& answer,
                                Requests& out) {
  WriteJob* job = queue_.FindActive(action_id);
  if (job == nullptr || !job->on_wire) return;
  job->on_wire = false;
  const absl::Duration now = clock_.Steady();
  Decision decision = job->protocol->OnAnswer(answer);
  window_.Finished(decision.outcome, job->sent_at, now, decision.retry_after);
  stats_.request_latency.Add(now - job->sent_at);
  const bool goes_on = decision.next != Decision::Next::kDone;
  if (goes_on && !MayWrite()) {
    Pump(out);  // drops it with the others
    return;
  }
  if (decision.next == Decision::Next::kContinue) {
    --job->attempts;  // part of the same attempt
    StartRequest(*job, out);
  } else if (decision.next == Decision::Next::kFollowUp) {
    AnswerFor(*job, std::move(decision));
    job->answered = true;
    queue_.RequeueIn(WriteLane::kEvent, action_id);
  } else if (goes_on && job->attempts < AttemptsOf(*job)) {
    RetryLater(*job, decision.retry_after);
  } else {
    Finish(*job, std::move(decision));
  }
  Pump(out);
}

int Executor::Impl::AttemptsOf(const WriteJob& job) const {
  if (job.protocol->done()) return 1 + options_.follow_up_attempts;
  return job.lane == WriteLane::kEvent ? options_.event_attempts : 1;
}

void Executor::Impl::RetryLater(WriteJob& job, absl::Duration at_least) {
  ++stats_.retries;
  const absl::Duration delay = std::max(job.backoff.Next(), at_least);
  timers_.After(delay, [weak = weak_from_this(), id = job.action_id] {
    const auto impl = weak.lock();
    if (!impl) return;
    Requests out;
    {
      std::lock_guard<std::mutex> lock(impl->mutex_);
      if (impl->stopped_ || impl->queue_.FindActive(id) == nullptr) return;
      impl->queue_.Requeue(id);
      impl->Pump(out);
    }
    impl->SendAll(std::move(out));
  });
}

void Executor::Impl::AnswerFor(const WriteJob& job, Decision decision) {
  const auto lane = static_cast<size_t>(job.lane);
  ++stats_.answered[lane];
  if (!decision.status.ok()) ++stats_.failed[lane];
  stats_.action_latency.Add(clock_.Steady() - job.submitted_at);
  Answer(job.action_id, std::move(decision.status), std::move(decision.resource_version));
}

void Executor::Impl::Finish(WriteJob& job, Decision decision) {
  absl::Status& status = decision.status;
  // A refusal of a repetition says nothing about the first attempt.
  const bool refused = absl::IsAborted(status) || absl::IsPermissionDenied(status) ||
                       absl::IsInvalidArgument(status);
  if (refused && job.protocol->outcome_unknown()) {
    status = absl::UnavailableError(status.message());
  }
  const bool put_off = decision.next == Decision::Next::kRetry && absl::IsAborted(status);
  if (put_off && job.decides_anew) status = absl::UnavailableError(status.message());
  const WriteJob finished = queue_.Finish(job.action_id);
  if (!finished.answered) AnswerFor(finished, std::move(decision));
}

void Executor::Impl::Drop(bool on_wire_too, absl::string_view why) {
  for (const WriteJob& job : queue_.Drop(on_wire_too)) {
    if (job.answered) continue;
    ++stats_.fenced;
    const bool unknown = job.on_wire || job.protocol->outcome_unknown();
    Answer(job.action_id, job.protocol->done() ? absl::OkStatus()
                          : unknown            ? absl::UnavailableError(why)
                                               : absl::AbortedError(why));
  }
}

void Executor::Impl::Poke() {
  Requests out;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    Pump(out);
  }
  SendAll(std::move(out));
}

void Executor::Impl::BeginDrain() {
  std::lock_guard<std::mutex> lock(mutex_);
  draining_ = true;
}

void Executor::Impl::Abandon() {
  std::lock_guard<std::mutex> lock(mutex_);
  draining_ = abandoned_ = true;
  Drop(/*on_wire_too=*/false, "the executor is shutting down");
  if (queue_.empty()) idle_.notify_all();
}

bool Executor::Impl::Idle() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return queue_.empty();
}

bool Executor::Impl::Drain(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  draining_ = true;
  const bool done =
      idle_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return queue_.empty(); });
  Drop(/*on_wire_too=*/true, "the executor is shutting down");
  return done;
}

void Executor::Impl::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!stopped_) Drop(/*on_wire_too=*/true, "the executor is shutting down");
  stopped_ = true;
  if (resume_timer_.has_value()) timers_.CancelTimer(*resume_timer_);
  resume_timer_.reset();
}

ExecutorStats Executor::Impl::GetStats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  ExecutorStats stats = stats_;
  stats.in_flight = window_.in_flight();
  stats.window = window_.size();
  stats.window_decreases = window_.decreases();
  for (size_t i = 0; i < kWriteLanes; ++i) stats.queued[i] = queue_.size(static_cast<WriteLane>(i));
  return stats;
}

Executor::Executor(HttpTransport& transport, Timers& timers, const Clock& clock,
                   EventQueue& results, ExecutorOptions options, Provider provider, Gate may_write)
    : impl_(std::make_shared<Impl>(transport, timers, clock, results, std::move(options),
                                   std::move(provider), std::move(may_write))) {}
Executor::~Executor() { impl_->Stop(); }
void Executor::Submit(const model::Action& action) { impl_->Submit(action); }
void Executor::Poke() { impl_->Poke(); }
void Executor::BeginDrain() { impl_->BeginDrain(); }
void Executor::Abandon() { impl_->Abandon(); }
bool Executor::Idle() const { return impl_->Idle(); }
bool Executor::Drain(absl::Duration timeout) { return impl_->Drain(timeout); }
ExecutorStats Executor::GetStats() const { return impl_->GetStats(); }

}  // namespace fairlead::kube
