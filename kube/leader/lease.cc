#include "kube/leader/lease.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/hash.h"
#include "kube/codec/codec.h"
#include "kube/codec/format_time.h"
#include "kube/leader/lease_record.h"
#include "kube/transport/backoff.h"

namespace fairlead::kube {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr int kReleaseAttempts = 3;

bool SameRecord(const LeaseRecord& a, const LeaseRecord& b) {
  return a.resource_version == b.resource_version && a.holder == b.holder &&
         a.renew_time == b.renew_time && a.transitions == b.transitions;
}

}  // namespace

absl::Status ValidateLeaseOptions(const LeaseOptions& options) {
  const auto bad = [](absl::string_view field, absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("leader election: ", field, " ", why));
  };
  if (options.ns.empty()) return bad("namespace", "is empty");
  if (options.name.empty()) return bad("name", "is empty");
  if (options.identity.empty()) return bad("identity", "is empty");
  const absl::Status times = CheckLeaseTimes(options.times);
  if (times.ok()) return times;
  return absl::InvalidArgumentError(absl::StrCat("leader election: ", times.message()));
}

// States: a wait (timer_) or one request (asked_). Generations as in Reflector: a callback of an
// earlier state is ignored.
class LeaderElector::Impl : public std::enable_shared_from_this<LeaderElector::Impl> {
 public:
  Impl(HttpTransport& transport, Timers& timers, const Clock& clock, LeaseOptions options,
       LeaseCallbacks callbacks)
      : transport_(transport),
        timers_(timers),
        clock_(clock),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        path_(absl::StrCat("/apis/coordination.k8s.io/v1/namespaces/", options_.ns, "/leases")),
        seed_(StableHash().Add(options_.identity).value()) {}

  void Start();
  void Stop(std::function<void()> released, bool release);
  bool IsLeader() const {
    const int64_t until_ns = leader_until_ns_.load(std::memory_order_acquire);
    return until_ns != kNever && absl::ToInt64Nanoseconds(clock_.Steady()) < until_ns;
  }
  absl::Duration TimeLeft() const {
    const int64_t until_ns = leader_until_ns_.load(std::memory_order_acquire);
    if (until_ns == kNever) return absl::ZeroDuration();
    const absl::Duration left = absl::Nanoseconds(until_ns) - clock_.Steady();
    if (left <= absl::ZeroDuration()) return absl::ZeroDuration();
    // Leaves a tenth of the margin for the inaccuracy of timers.
    return left + (options_.times.lease_duration - options_.times.renew_deadline) * 0.9;
  }
  LeaseStats GetStats() const;

 private:
  enum class Asked { kRead, kCreate, kRenew, kRelease };
  using Calls = std::vector<std::function<void()>>;

  template <typename Step>
  void Enter(Step step);
  void RunCalls();
  void Tick();
  void Ask(Asked what, HttpRequest request);
  void Read();
  void Create();
  void Write(LeaseRecord record, Asked what);
  void TakeOrRenew();
  // False: the process does not renew the lease and will try again.
  bool Alive();
  void TryRelease(Calls& calls);
  void OnAnswer(Asked what, const absl::StatusOr<HttpResponse>& answer, Calls& calls);
  void OnRead(const HttpResponse& response, Calls& calls);
  void OnWritten(const HttpResponse& response, Calls& calls);
  void OnReleased(const absl::StatusOr<HttpResponse>& answer, Calls& calls);
  void Observe(LeaseRecord record);
  void Renewed(absl::Duration sent_at, Calls& calls);
  void Lose(Calls& calls);
  void ArmExpiry();
  void WaitAndTick();
  void FinishStop(Calls& calls);
  void NoteError(std::string text);
  absl::Duration RequestTimeout() const { return options_.times.renew_deadline / 2; }

  HttpTransport& transport_;
  Timers& timers_;
  const Clock& clock_;
  const LeaseOptions options_;
  const LeaseCallbacks callbacks_;
  const std::string path_;
  const uint64_t seed_;

  // Steady nanoseconds until which this process leads; kNever if it does not.
  std::atomic<int64_t> leader_until_ns_{kNever};

  mutable std::mutex mutex_;
  bool started_ = false, stopping_ = false, stopped_ = false;
  bool leading_ = false;  // on_gain was called, and not yet on_loss
  bool request_open_ = false;
  absl::Duration asked_at_ = absl::ZeroDuration();
  std::optional<Timers::Id> tick_timer_, expiry_timer_;
  // The record as last seen, and since when it is unchanged by our clock.
  std::optional<LeaseRecord> seen_;
  absl::Duration seen_since_ = absl::ZeroDuration();
  LeaseRecord proposed_;  // what is being written
  uint64_t ticks_ = 0;
  int release_attempts_ = 0;
  std::function<void()> released_;
  Calls calls_;  // pending callbacks; they run after the lock is released
  bool calling_ = false;
  LeaseStats stats_;
};

template <typename Step>
void LeaderElector::Impl::Enter(Step step) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    step(calls_);
  }
  RunCalls();
}

// One thread at a time runs callbacks, so that a loss never precedes its gain. Another thread
// leaves its calls to the first.
void LeaderElector::Impl::RunCalls() {
  for (;;) {
    Calls calls;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (calling_ || calls_.empty()) return;
      calling_ = true;
      calls.swap(calls_);
    }
    for (const auto& call : calls) {
      if (call) call();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    calling_ = false;
  }
}

void LeaderElector::Impl::NoteError(std::string text) {
  ++stats_.errors;
  stats_.last_error = std::move(text);
}

void LeaderElector::Impl::Start() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (started_ || stopped_) return;
  started_ = true;
  Read();
}

void LeaderElector::Impl::Ask(Asked what, HttpRequest request) {
  request_open_ = true;
  asked_at_ = clock_.Steady();
  request.timeout = RequestTimeout();
  transport_.Send(std::move(request),
                  [weak = weak_from_this(), what](const absl::StatusOr<HttpResponse>& answer) {
                    const auto impl = weak.lock();
                    if (!impl) return;
                    impl->Enter([&](Calls& calls) {
                      impl->request_open_ = false;
                      impl->OnAnswer(what, answer, calls);
                    });
                  });
}

void LeaderElector::Impl::Read() {
  HttpRequest request;
  request.path = absl::StrCat(path_, "/", options_.name);
  Ask(Asked::kRead, std::move(request));
}

void LeaderElector::Impl::Create() {
  const std::string now = FormatMicros(clock_.Now());
  proposed_ = LeaseRecord{};
  proposed_.holder = options_.identity;
  proposed_.duration_s = absl::ToInt64Seconds(options_.times.lease_duration);
  proposed_.acquire_time = proposed_.renew_time = now;
  HttpRequest request;
  request.method = "POST";
  request.path = path_;
  request.content_type = kJson;
  request.traffic = TrafficClass::kWrite;
  request.body = EncodeNewLease(options_.ns, options_.name, proposed_);
  Ask(Asked::kCreate, std::move(request));
}

void LeaderElector::Impl::Write(LeaseRecord record, Asked what) {
  proposed_ = std::move(record);
  HttpRequest request;
  request.method = "PATCH";
  request.path = absl::StrCat(path_, "/", options_.name);
  request.content_type = kMergePatch;
  request.traffic = TrafficClass::kWrite;
  request.body = EncodeLeasePatch(proposed_);
  Ask(what, std::move(request));
}

bool LeaderElector::Impl::Alive() {
  if (!callbacks_.alive || callbacks_.alive()) return true;
  ++stats_.withheld;
  NoteError("the lease is not renewed: the process does not answer");
  WaitAndTick();
  return false;
}

void LeaderElector::Impl::TakeOrRenew() {
  if (!Alive()) return;
  const std::string now = FormatMicros(clock_.Now());
  LeaseRecord record = *seen_;
  if (record.holder != options_.identity) {
    record.holder = options_.identity;
    record.acquire_time = now;
    ++record.transitions;
  }
  record.duration_s = absl::ToInt64Seconds(options_.times.lease_duration);
  record.renew_time = now;
  Write(std::move(record), Asked::kRenew);
}

void LeaderElector::Impl::Tick() {
  tick_timer_.reset();
  // A leader knows the version and renews at once; any other candidate reads first.
  if (leading_ && seen_.has_value() && seen_->holder == options_.identity) {
    TakeOrRenew();
  } else {
    Read();
  }
}

void LeaderElector::Impl::WaitAndTick() {
  const absl::Duration delay = JitteredBetween(options_.times.retry_period,
                                               options_.times.retry_period * 1.2, seed_, ticks_++);
  tick_timer_ = timers_.After(delay, [weak = weak_from_this()] {
    if (const auto impl = weak.lock()) impl->Enter([&](Calls&) { impl->Tick(); });
  });
}

void LeaderElector::Impl::Observe(LeaseRecord record) {
  if (!seen_.has_value() || !SameRecord(*seen_, record)) seen_since_ = clock_.Steady();
  stats_.holder = record.holder;
  seen_ = std::move(record);
}

void LeaderElector::Impl::OnAnswer(Asked what, const absl::StatusOr<HttpResponse>& answer,
                                   Calls& calls) {
  if (what == Asked::kRelease) return OnReleased(answer, calls);
  if (!answer.ok()) {
    NoteError(answer.status().ToString());
    if (what != Asked::kRead) seen_.reset();  // it may have been written: read it again
  } else if (answer->status == 200 || answer->status == 201) {
    return what == Asked::kRead ? OnRead(*answer, calls) : OnWritten(*answer, calls);
  } else if (what == Asked::kRead && answer->status == 404 && !stopping_) {
    if (Alive()) Create();
    return;
  } else {
    const ApiStatus error = DecodeStatus(answer->content_type, answer->body);
    NoteError(absl::StrCat(answer->status, " ", error.reason, ": ", error.message));
    if (what != Asked::kRead) seen_.reset();
  }
  if (stopping_) return TryRelease(calls);
  WaitAndTick();
}

void LeaderElector::Impl::OnRead(const HttpResponse& response, Calls& calls) {
  absl::StatusOr<LeaseRecord> record = ParseLease(response.body);
  if (!record.ok()) {
    NoteError(std::string(record.status().message()));
    return stopping_ ? FinishStop(calls) : WaitAndTick();
  }
  Observe(std::move(*record));
  if (stopping_) return TryRelease(calls);
  const bool ours = seen_->holder == options_.identity;
  if (!ours && leading_) Lose(calls);
  const absl::Duration duration =
      std::max(options_.times.lease_duration, absl::Seconds(seen_->duration_s));
  const bool free = seen_->holder.empty() || clock_.Steady() >= seen_since_ + duration;
  if (ours || free) return TakeOrRenew();
  WaitAndTick();
}

void LeaderElector::Impl::OnWritten(const HttpResponse& response, Calls& calls) {
  absl::StatusOr<LeaseRecord> record = ParseLease(response.body);
  if (record.ok()) {
    Observe(std::move(*record));
  } else {
    NoteError(std::string(record.status().message()));
    seen_.reset();
  }
  if (stopping_) return TryRelease(calls);
  Renewed(asked_at_, calls);
  WaitAndTick();
}

void LeaderElector::Impl::Renewed(absl::Duration sent_at, Calls& calls) {
  const absl::Duration until = sent_at + options_.times.renew_deadline;
  // The answer took too long to prove anything.
  if (until <= clock_.Steady()) return;
  // Reports a loss of leadership before the new gain.
  if (leading_ && !IsLeader()) Lose(calls);
  leader_until_ns_.store(absl::ToInt64Nanoseconds(until), std::memory_order_release);
  ArmExpiry();
  if (leading_) return;
  leading_ = true;
  ++stats_.gains;
  calls.push_back(callbacks_.on_gain);
}

void LeaderElector::Impl::ArmExpiry() {
  if (expiry_timer_.has_value()) timers_.CancelTimer(*expiry_timer_);
  const absl::Duration left =
      absl::Nanoseconds(leader_until_ns_.load(std::memory_order_acquire)) - clock_.Steady();
  expiry_timer_ = timers_.After(left, [weak = weak_from_this()] {
    const auto impl = weak.lock();
    if (!impl) return;
    impl->Enter([&](Calls& calls) {
      impl->expiry_timer_.reset();
      if (!impl->leading_) return;
      // A renewal may have come in while this call waited for the lock.
      if (impl->IsLeader()) return impl->ArmExpiry();
      impl->NoteError("the lease was not renewed in time");
      impl->Lose(calls);
    });
  });
}

void LeaderElector::Impl::Lose(Calls& calls) {
  leader_until_ns_.store(kNever, std::memory_order_release);
  if (expiry_timer_.has_value()) timers_.CancelTimer(*expiry_timer_);
  expiry_timer_.reset();
  if (!leading_) return;
  leading_ = false;
  ++stats_.losses;
  calls.push_back(callbacks_.on_loss);
}

void LeaderElector::Impl::Stop(std::function<void()> released, bool release) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || stopping_) {
      if (!release && !stopped_) FinishStop(calls_);
      calls_.push_back(std::move(released));
    } else {
      stopping_ = true;
      released_ = std::move(released);
      const bool may_hold =
          leading_ || request_open_ || (seen_.has_value() && seen_->holder == options_.identity);
      Lose(calls_);
      if (tick_timer_.has_value()) timers_.CancelTimer(*tick_timer_);
      tick_timer_.reset();
      if (!release || !may_hold) {
        FinishStop(calls_);
      } else if (!request_open_) {
        TryRelease(calls_);
      }  // else: when the open request is answered
    }
  }
  RunCalls();
}

void LeaderElector::Impl::TryRelease(Calls& calls) {
  if (++release_attempts_ > kReleaseAttempts) return FinishStop(calls);
  if (!seen_.has_value()) return Read();  // the last write's outcome is unknown
  if (seen_->holder != options_.identity) return FinishStop(calls);
  LeaseRecord record = *seen_;
  record.holder.clear();
  record.duration_s = 1;
  record.renew_time = FormatMicros(clock_.Now());
  Write(std::move(record), Asked::kRelease);
}

void LeaderElector::Impl::OnReleased(const absl::StatusOr<HttpResponse>& answer, Calls& calls) {
  if (answer.ok() && answer->status == 200) {
    stats_.holder.clear();
    return FinishStop(calls);
  }
  NoteError(absl::StrCat("release: ",
                         answer.ok() ? absl::StrCat(answer->status) : answer.status().ToString()));
  seen_.reset();
  TryRelease(calls);
}

void LeaderElector::Impl::FinishStop(Calls& calls) {
  stopped_ = true;
  calls.push_back(std::move(released_));
  released_ = nullptr;
}

LeaseStats LeaderElector::Impl::GetStats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  LeaseStats stats = stats_;
  stats.leader = IsLeader();
  return stats;
}

LeaderElector::LeaderElector(HttpTransport& transport, Timers& timers, const Clock& clock,
                             LeaseOptions options, LeaseCallbacks callbacks)
    : impl_(std::make_shared<Impl>(transport, timers, clock, options, std::move(callbacks))) {
  const absl::Status valid = ValidateLeaseOptions(options);
  FAIRLEAD_CHECK(valid.ok(), valid.ToString());
}
LeaderElector::~LeaderElector() { impl_->Stop(nullptr, /*release=*/false); }
void LeaderElector::Start() { impl_->Start(); }
void LeaderElector::Stop(std::function<void()> released) {
  impl_->Stop(std::move(released), /*release=*/true);
}
bool LeaderElector::IsLeader() const { return impl_->IsLeader(); }
absl::Duration LeaderElector::TimeLeft() const { return impl_->TimeLeft(); }
LeaseStats LeaderElector::GetStats() const { return impl_->GetStats(); }

}  // namespace fairlead::kube
