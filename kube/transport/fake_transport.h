// A scripted API server and its clock, for tests of code that uses HttpTransport and Timers.
//
// Nothing happens by itself: requests, answers and due timers queue up. Every callback runs inside
// Pump, Advance or Call, in the order in which it was queued. A test always gets the same order of
// callbacks.
//
//   FakeClock clock(absl::UnixEpoch());
//   FakeTransport transport(clock);
//   transport.On("GET", "/api/v1/pods", FakeTransport::Reply::Json(200, "{}"));
//   ... code under test sends ...
//   transport.Pump();                     // the answer arrives
//   transport.Advance(absl::Seconds(5));  // timers fire and calls time out, in order of time
//
// A request that no script answers stays open until the test answers it by hand: Respond and Fail
// for calls, Headers, Data and End for streams. An open call or stream with a finite time-out ends
// with DeadlineExceeded once that time has passed.
//
// Thread-safety: none; everything belongs to the test's thread, the clock too. Callbacks may call
// any method but Pump, Advance and Call.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"

namespace fairlead::kube {

class FakeTransport final : public HttpTransport, public Timers {
 public:
  // HttpTransport and Timers each have an Id; both are this.
  using Id = uint64_t;

  // What a script does with a request.
  struct Reply {
    absl::Status failure;    // not OK: no HTTP answer came
    HttpResponse response;   // of a stream: headers and, unless empty, one chunk of data
    bool hold = false;       // leave it open; other fields are ignored
    bool keep_open = false;  // of a stream: do not end it after the body

    static Reply Json(int status, std::string body);
    static Reply Protobuf(int status, std::string body);
    static Reply Failure(absl::Status status);
    static Reply Hold();
    // Headers of a watch that stays open.
    static Reply Watch(std::string content_type = kJson);
  };
  using Handler = std::function<Reply(const HttpRequest&)>;
  using Predicate = std::function<bool(const HttpRequest&)>;

  // One request as it was sent, in the order of sending.
  struct Exchange {
    Id id = 0;
    HttpRequest request;
    bool stream = false;
    absl::Duration sent_at;  // Clock::Steady
    bool cancelled = false;  // Cancel was called while it was open
    bool done = false;       // its last callback has run
  };

  // Advance moves the clock; the clock must outlive the transport.
  explicit FakeTransport(FakeClock& clock) : clock_(clock) {}
  // Drops open calls without a callback: the callers may no longer exist. See CancelAll.
  ~FakeTransport() override = default;

  // ---- the script ------------------------------------------------------------------------------
  static constexpr int kAlways = -1;
  // The newest matching script answers; a script with no `times` left is removed. The path is
  // compared up to the '?'; a final '*' matches anything.
  void On(std::string method, std::string path, Handler handler, int times = kAlways);
  void On(std::string method, std::string path, Reply reply, int times = kAlways);
  void When(Predicate predicate, Handler handler, int times = kAlways);
  void ClearScripts() { scripts_.clear(); }

  // ---- by hand ---------------------------------------------------------------------------------
  // All of these queue, and are ignored for ids that are no longer open.

  void Respond(Id id, HttpResponse response);
  void Fail(Id id, absl::Status status);
  void Headers(Id id, int status, std::string content_type = kJson);
  void Data(Id id, std::string bytes);
  void End(Id id, absl::Status status = absl::OkStatus(),
           absl::Duration retry_after = absl::ZeroDuration());
  // As if every caller had called Cancel.
  void CancelAll();

  // ---- running ---------------------------------------------------------------------------------

  // Runs everything due, and everything that this queues; returns the number of callbacks and
  // deliveries.
  size_t Pump();
  // Advances the clock, stopping at every timer and time-out on the way.
  void Advance(absl::Duration by);
  // Time until the next timer or time-out; infinite if there is none.
  [[nodiscard]] absl::Duration UntilNextTimer() const;

  // ---- recorded exchanges ----------------------------------------------------------------------
  [[nodiscard]] const std::deque<Exchange>& exchanges() const { return exchanges_; }
  // Requests sent so far with this method and path (as in On). The pointers stay valid.
  [[nodiscard]] std::vector<const Exchange*> Sent(absl::string_view method,
                                                  absl::string_view path) const;
  // The oldest open request with this method and path (as in On).
  [[nodiscard]] std::optional<Id> FindOpen(absl::string_view method, absl::string_view path) const;
  [[nodiscard]] size_t open_count() const { return open_.size(); }
  [[nodiscard]] size_t timer_count() const { return timers_.size(); }

  // ---- HttpTransport and Timers ----------------------------------------------------------------
  Id Send(HttpRequest request, Done done) override;
  Id Stream(HttpRequest request, std::shared_ptr<StreamObserver> observer) override;
  void Cancel(Id id) override;
  Id After(absl::Duration delay, std::function<void()> callback) override;
  void CancelTimer(Id id) override;

 private:
  struct Script {
    Predicate predicate;
    Handler handler;
    int times;
  };
  struct Open {
    size_t exchange;                           // index into exchanges_
    Done done;                                 // of a call
    std::shared_ptr<StreamObserver> observer;  // of a stream
    bool headers_sent = false;
    absl::Duration deadline;
  };
  using TimerKey = std::pair<absl::Duration, Id>;  // due, then in order of creation

  bool RunWhileWaiting() override;
  Id Start(HttpRequest request, bool stream, Open open);
  void RunScripts(Id id);
  void Apply(Id id, const Reply& reply);
  void DeliverHeaders(Open& open, int status, const std::string& content_type);
  void Finish(Id id, absl::StatusOr<HttpResponse> answer);
  bool RunOneTimer();
  void QueueTimeouts();
  [[nodiscard]] absl::Duration NextDue() const;

  FakeClock& clock_;
  Id last_id_ = 0;
  bool pumping_ = false;
  std::vector<Script> scripts_;
  std::deque<Exchange> exchanges_;  // references stay valid
  std::map<Id, Open> open_;
  std::map<TimerKey, std::function<void()>> timers_;
  std::deque<std::function<void()>> queue_;
};

}  // namespace fairlead::kube
