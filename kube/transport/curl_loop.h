// The I/O thread of CurlTransport: libcurl multi handles, calls, credentials and timers.
// curl_transport.h describes the behaviour; this is the implementation.
//
// Other threads append commands to the inbox; the I/O thread alone touches everything else. A turn
// of the loop: take the inbox, wait for sockets, timers or a wake-up, let libcurl work, report
// completed calls, run due timers. Callbacks run between libcurl's functions or (data of streams)
// within its write callback. Their requests go through the inbox too, so that nothing re-enters
// libcurl.
#pragma once

#include <curl/curl.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/curl_easy.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/reactor.h"
#include "kube/transport/timer_queue.h"
#include "kube/transport/transfer.h"

namespace fairlead::kube {

class CurlLoop {
 public:
  using Id = uint64_t;

  CurlLoop(CurlTarget target, std::unique_ptr<CredentialSource> credentials, const Clock& clock,
           const CurlTransportOptions& options);
  // Cancels open calls and joins the thread.
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  // From any thread.
  Id Start(HttpRequest request, HttpTransport::Done done, std::shared_ptr<StreamObserver> observer);
  void Cancel(Id id);
  Id After(absl::Duration delay, std::function<void()> callback);
  void CancelTimer(Id id) { timers_.Remove(id); }
  // Cancels all calls, now and later. From any thread but the I/O thread. Returns once the calls
  // that were open have been told.
  void Close();

 private:
  static constexpr size_t kClasses = 3;

  struct Call {
    template <typename... TransferArgs>
    Call(Id call_id, size_t call_lane, TransferArgs&&... args)
        : id(call_id), lane(call_lane), transfer(std::forward<TransferArgs>(args)...) {}
    const Id id;
    const size_t lane;  // index into lanes_
    Transfer transfer;
    std::unique_ptr<Easy> easy;                         // while libcurl has it
    CredentialsPtr credentials;                         // of the present attempt
    absl::Duration launched_at = absl::ZeroDuration();  // steady; of the current attempt
    TimerQueue::Id waiting = 0;                         // timer that ends the wait for credentials
  };

  struct Command {
    enum class Kind { kStart, kCancel, kCredentials, kClose };
    explicit Command(Kind command_kind, Id call_id = 0) : kind(command_kind), id(call_id) {}
    Kind kind;
    Id id;
    std::unique_ptr<Call> call;                  // kStart
    absl::StatusOr<CredentialsPtr> credentials;  // kCredentials
    std::function<void()> closed;                // kClose
  };

  // The connections of one TrafficClass.
  struct Lane {
    CurlLoop* loop = nullptr;
    uint32_t index = 0;
    CURLM* multi = nullptr;
    absl::Duration due = absl::InfiniteDuration();  // when libcurl wants to be called
    std::vector<std::unique_ptr<Easy>> idle;
    absl::flat_hash_map<int, absl::Duration> last_read;  // of each open socket; steady
    bool http2 = false;                                  // as the last answer came
  };

  void Post(Command command);
  void ThreadMain();
  bool TakeInbox();
  void Handle(Command& command);
  void Wait(bool more);
  // Lets answers and events gather while there are many.
  void Pace();
  void RunTimers();

  void Begin(Call& call);
  void AwaitCredentials(Call& call, CredentialsPtr rejected);
  void OnCredentials(Id id, absl::StatusOr<CredentialsPtr> credentials);
  void Launch(Call& call, CredentialsPtr credentials);
  // Removes the call's handle from libcurl, which ends a transfer under way.
  void Detach(Call& call);
  void Finish(Id id, const absl::Status& status);
  void CancelAll();

  static void NoteVersion(Lane& lane, const Easy& easy);
  // After a time-out of the call: closes connections that have received nothing since it was sent.
  void CutIfDead(Lane& lane, const Call& call);

  void OpenLanes(const CurlTransportOptions& options);
  void CloseLanes();
  void Drive(Lane& lane, curl_socket_t fd, int events);
  void DriveTimeout(Lane& lane);
  void ReportComplete(Lane& lane);
  static int OnSocket(CURL* easy, curl_socket_t fd, int what, void* lane, void* socket) noexcept;
  static int OnTimer(CURLM* multi, long timeout_ms, void* lane) noexcept;

  const CurlTarget target_;
  const Clock& clock_;
  const int64_t max_body_bytes_;
  Reactor reactor_;
  TimerQueue timers_;
  std::atomic<Id> last_id_ = 0;

  std::mutex mutex_;  // guards the next two
  std::vector<Command> inbox_;
  bool stopping_ = false;

  // Owned by the I/O thread.
  bool closed_ = false;
  std::array<Lane, kClasses> lanes_;
  absl::flat_hash_map<Id, std::unique_ptr<Call>> calls_;
  std::vector<Reactor::Ready> ready_;
  absl::Duration last_turn_ = absl::ZeroDuration();  // Clock::Steady
  std::vector<Command> taken_;

  // Destroyed first: the source's own thread may post to the inbox until then.
  std::unique_ptr<CredentialSource> source_;
  std::thread thread_;
};

}  // namespace fairlead::kube
