#include "kube/transport/curl_loop.h"

#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "kube/credentials/quiet_thread.h"

namespace fairlead::kube {
namespace {

// Handles kept for later requests, per class. A larger burst creates more handles.
constexpr size_t kIdleHandlesMax = 256;
// Callbacks that learn of the shutdown may make calls, which are cancelled in turn; this bounds the
// rounds.
constexpr int kShutdownRounds = 16;
// While so many requests are under way, the thread begins its turns this far apart, and one turn
// takes what has come meanwhile. A wake-up costs the thread, and the kernel that wakes it, more
// than reading one message does.
constexpr size_t kManyCalls = 64;
constexpr absl::Duration kTurn = absl::Milliseconds(4);

}  // namespace

CurlLoop::CurlLoop(CurlTarget target, std::unique_ptr<CredentialSource> credentials,
                   const Clock& clock, const CurlTransportOptions& options)
    : target_(std::move(target)),
      clock_(clock),
      max_body_bytes_(options.max_body_bytes),
      source_(std::move(credentials)) {
  OpenLanes(options);
  thread_ = StartQuietThread([this] { ThreadMain(); });
}

CurlLoop::~CurlLoop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  reactor_.Wake();
  thread_.join();
}

// ---- any thread --------------------------------------------------------------------------------

void CurlLoop::Post(Command command) {
  bool was_empty = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    was_empty = inbox_.empty();
    inbox_.push_back(std::move(command));
  }
  // The caller that filled an empty inbox has woken the loop.
  if (was_empty) reactor_.Wake();
}

CurlLoop::Id CurlLoop::Start(HttpRequest request, HttpTransport::Done done,
                             std::shared_ptr<StreamObserver> observer) {
  const size_t lane = static_cast<size_t>(request.traffic);
  FAIRLEAD_CHECK(lane < kClasses, "a traffic class without connections");
  const Id id = ++last_id_;
  Command command(Command::Kind::kStart, id);
  command.call = std::make_unique<Call>(id, lane, std::move(request), std::move(done),
                                        std::move(observer), max_body_bytes_, clock_);
  Post(std::move(command));
  return id;
}

void CurlLoop::Cancel(Id id) { Post(Command(Command::Kind::kCancel, id)); }

CurlLoop::Id CurlLoop::After(absl::Duration delay, std::function<void()> callback) {
  bool earliest = false;
  const Id id = timers_.Add(clock_.Steady() + std::max(delay, absl::ZeroDuration()),
                            std::move(callback), &earliest);
  if (earliest) reactor_.Wake();
  return id;
}

void CurlLoop::Close() {
  const auto told = std::make_shared<std::promise<void>>();
  Command command(Command::Kind::kClose);
  command.closed = [told] { told->set_value(); };
  Post(std::move(command));
  told->get_future().wait();
}

// ---- the loop ----------------------------------------------------------------------------------

void CurlLoop::ThreadMain() {
  for (;;) {
    const bool more = TakeInbox();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) break;
    }
    Wait(more);
    RunTimers();
  }
  closed_ = true;
  CancelAll();
  for (int round = 0; round < kShutdownRounds && TakeInbox(); ++round) {
  }
  CloseLanes();
}

// True if handling the commands added new ones, or may have.
bool CurlLoop::TakeInbox() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_.swap(inbox_);
  }
  for (Command& command : taken_) Handle(command);
  taken_.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  return !inbox_.empty();
}

void CurlLoop::Handle(Command& command) {
  switch (command.kind) {
    case Command::Kind::kStart: {
      const auto it = calls_.emplace(command.id, std::move(command.call)).first;
      Begin(*it->second);
      return;
    }
    case Command::Kind::kCancel:
      return Finish(command.id, absl::CancelledError("the call was cancelled"));
    case Command::Kind::kCredentials:
      return OnCredentials(command.id, std::move(command.credentials));
    case Command::Kind::kClose:
      closed_ = true;
      CancelAll();
      return command.closed();
  }
}

void CurlLoop::Wait(bool more) {
  absl::Duration due = timers_.NextDue();
  for (const Lane& lane : lanes_) due = std::min(due, lane.due);
  Pace();
  reactor_.Wait(more ? absl::ZeroDuration() : due - clock_.Steady(), ready_);
  for (const Reactor::Ready& ready : ready_) {
    int events = 0;
    if ((ready.events & EPOLLIN) != 0) events |= CURL_CSELECT_IN;
    if ((ready.events & EPOLLOUT) != 0) events |= CURL_CSELECT_OUT;
    if ((ready.events & (EPOLLERR | EPOLLHUP)) != 0) events |= CURL_CSELECT_ERR;
    Lane& lane = lanes_[ready.tag];
    if ((ready.events & EPOLLIN) != 0) {
      const auto socket = lane.last_read.find(ready.fd);
      if (socket != lane.last_read.end()) socket->second = clock_.Steady();
    }
    Drive(lane, ready.fd, events);
  }
  const absl::Duration now = clock_.Steady();
  for (Lane& lane : lanes_) {
    if (lane.due <= now) DriveTimeout(lane);
  }
}

void CurlLoop::Pace() {
  const absl::Duration since = clock_.Steady() - last_turn_;
  if (calls_.size() >= kManyCalls && since < kTurn) absl::SleepFor(kTurn - since);
  last_turn_ = clock_.Steady();
}

void CurlLoop::RunTimers() {
  // Timers that callbacks add now wait for the next turn, however short their delay.
  const absl::Duration now = clock_.Steady();
  while (const TimerQueue::Callback callback = timers_.TakeDue(now)) callback();
}

// ---- calls -------------------------------------------------------------------------------------

void CurlLoop::Begin(Call& call) {
  if (closed_) return Finish(call.id, absl::CancelledError("the transport is closed"));
  CredentialsPtr credentials = source_->Current();
  if (credentials == nullptr) return AwaitCredentials(call, nullptr);
  Launch(call, std::move(credentials));
}

void CurlLoop::AwaitCredentials(Call& call, CredentialsPtr rejected) {
  const Id id = call.id;
  call.waiting = timers_.Add(
      call.transfer.deadline(),
      [this, id] {
        OnCredentials(id, absl::DeadlineExceededError("the credentials were not there in time"));
      },
      nullptr);
  source_->Load(std::move(rejected), [this, id](absl::StatusOr<CredentialsPtr> credentials) {
    Command command(Command::Kind::kCredentials, id);
    command.credentials = std::move(credentials);
    Post(std::move(command));
  });
}

void CurlLoop::OnCredentials(Id id, absl::StatusOr<CredentialsPtr> credentials) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || it->second->waiting == 0) return;  // cancelled, or too late
  Call& call = *it->second;
  timers_.Remove(call.waiting);
  call.waiting = 0;
  if (call.transfer.rejected()) {
    // No newer credentials: the server's 401 is the answer.
    if (!credentials.ok() || **credentials == *call.credentials) {
      return Finish(id, absl::OkStatus());
    }
    call.transfer.StartOver();
  }
  if (!credentials.ok()) return Finish(id, credentials.status());
  Launch(call, *std::move(credentials));
}

void CurlLoop::Launch(Call& call, CredentialsPtr credentials) {
  const absl::Duration left = call.transfer.deadline() - clock_.Steady();
  if (left <= absl::ZeroDuration()) {
    return Finish(call.id, absl::DeadlineExceededError("its time was over before it was sent"));
  }
  Lane& lane = lanes_[call.lane];
  if (lane.idle.empty()) {
    call.easy = Easy::Create(target_, call.transfer.request().traffic);
    if (call.easy == nullptr) {
      return Finish(call.id, absl::ResourceExhaustedError("libcurl gave no handle"));
    }
  } else {
    call.easy = std::move(lane.idle.back());
    lane.idle.pop_back();
  }
  call.credentials = credentials;
  call.launched_at = clock_.Steady();
  const absl::Status ready = call.easy->Prepare(call.transfer.request(), std::move(credentials),
                                                left, &call.transfer, &call);
  if (!ready.ok()) {
    call.easy.reset();
    return Finish(call.id, ready);
  }
  const CURLMcode added = curl_multi_add_handle(lane.multi, call.easy->handle());
  FAIRLEAD_CHECK(added == CURLM_OK, curl_multi_strerror(added));
}

void CurlLoop::Detach(Call& call) {
  if (call.easy == nullptr) return;
  Lane& lane = lanes_[call.lane];
  curl_multi_remove_handle(lane.multi, call.easy->handle());
  if (lane.idle.size() < kIdleHandlesMax) lane.idle.push_back(std::move(call.easy));
  call.easy.reset();
}

void CurlLoop::Finish(Id id, const absl::Status& status) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) return;
  const std::unique_ptr<Call> call = std::move(it->second);
  calls_.erase(it);
  if (call->waiting != 0) timers_.Remove(call->waiting);
  Detach(*call);
  call->transfer.Finish(status);
}

void CurlLoop::CancelAll() {
  std::vector<Id> ids;
  for (const auto& [id, call] : calls_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const Id id : ids) Finish(id, absl::CancelledError("the transport is closed"));
}

// ---- libcurl -----------------------------------------------------------------------------------

void CurlLoop::OpenLanes(const CurlTransportOptions& options) {
  const std::pair<TrafficClass, int> connections[] = {
      {TrafficClass::kRead, options.read_connections_max},
      {TrafficClass::kWatch, options.watch_connections_max},
      {TrafficClass::kWrite, options.write_connections_max}};
  for (const auto& [traffic, connections_max] : connections) {
    const size_t index = static_cast<size_t>(traffic);
    Lane& lane = lanes_[index];
    lane.loop = this;
    lane.index = static_cast<uint32_t>(index);
    lane.multi = curl_multi_init();
    FAIRLEAD_CHECK(lane.multi != nullptr, "libcurl has no memory");
    curl_multi_setopt(lane.multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
    curl_multi_setopt(lane.multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                      static_cast<long>(connections_max));
    curl_multi_setopt(lane.multi, CURLMOPT_MAX_CONCURRENT_STREAMS,
                      static_cast<long>(options.streams_per_connection_max));
    curl_multi_setopt(lane.multi, CURLMOPT_SOCKETFUNCTION, OnSocket);
    curl_multi_setopt(lane.multi, CURLMOPT_SOCKETDATA, static_cast<void*>(&lane));
    curl_multi_setopt(lane.multi, CURLMOPT_TIMERFUNCTION, OnTimer);
    curl_multi_setopt(lane.multi, CURLMOPT_TIMERDATA, static_cast<void*>(&lane));
  }
}

// Runs in the I/O thread: closing TLS connections writes, and only this thread blocks SIGPIPE.
void CurlLoop::CloseLanes() {
  for (Lane& lane : lanes_) {
    lane.idle.clear();
    curl_multi_cleanup(lane.multi);
  }
}

void CurlLoop::Drive(Lane& lane, curl_socket_t fd, int events) {
  int running = 0;
  curl_multi_socket_action(lane.multi, fd, events, &running);
  ReportComplete(lane);
}

void CurlLoop::DriveTimeout(Lane& lane) {
  lane.due = absl::InfiniteDuration();
  Drive(lane, CURL_SOCKET_TIMEOUT, 0);
  if (lane.due != absl::InfiniteDuration()) return;
  // libcurl tells a time only once, in coarser units than ours. It may find that the time has not
  // passed yet.
  long timeout_ms = -1;
  curl_multi_timeout(lane.multi, &timeout_ms);
  OnTimer(lane.multi, timeout_ms, &lane);
}

void CurlLoop::ReportComplete(Lane& lane) {
  int queued = 0;
  while (const CURLMsg* message = curl_multi_info_read(lane.multi, &queued)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // removing the handle destroys the message
    char* tag = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &tag);
    Call& call = *reinterpret_cast<Call*>(tag);
    const absl::Status outcome = call.transfer.Outcome(code, call.easy->ErrorText(code));
    NoteVersion(lane, *call.easy);
    if (code == CURLE_OPERATION_TIMEDOUT) CutIfDead(lane, call);
    Detach(call);
    if (outcome.ok() && call.transfer.rejected()) {
      AwaitCredentials(call, call.credentials);
    } else {
      Finish(call.id, outcome);
    }
  }
}

// ---- dead connections --------------------------------------------------------------------------

void CurlLoop::NoteVersion(Lane& lane, const Easy& easy) {
  long version = 0;
  curl_easy_getinfo(easy.handle(), CURLINFO_HTTP_VERSION, &version);
  if (version != CURL_HTTP_VERSION_NONE) lane.http2 = version == CURL_HTTP_VERSION_2_0;
}

// libcurl does not tell which connection a request uses while others share it. Another silent
// connection is dead too, or idle. libcurl detects the closed connection and fails the requests on
// it.
void CurlLoop::CutIfDead(Lane& lane, const Call& call) {
  if (!lane.http2) return;  // each request has its own connection, which libcurl closes
  const absl::Duration now = clock_.Steady();
  for (auto& [fd, last_read] : lane.last_read) {
    if (last_read >= call.launched_at) continue;
    shutdown(fd, SHUT_RDWR);
    // Its end is about to be read: once is enough.
    last_read = now;
  }
}

int CurlLoop::OnSocket(CURL* /*easy*/, curl_socket_t fd, int what, void* lane,
                       void* /*socket*/) noexcept {
  Lane& self = *static_cast<Lane*>(lane);
  if (what == CURL_POLL_REMOVE) {
    self.last_read.erase(fd);
    self.loop->reactor_.Forget(fd);
    return 0;
  }
  uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  self.last_read.try_emplace(fd, self.loop->clock_.Steady());
  self.loop->reactor_.Watch(fd, self.index, events);
  return 0;
}

int CurlLoop::OnTimer(CURLM* /*multi*/, long timeout_ms, void* lane) noexcept {
  Lane& self = *static_cast<Lane*>(lane);
  self.due = timeout_ms < 0 ? absl::InfiniteDuration()
                            : self.loop->clock_.Steady() + absl::Milliseconds(timeout_ms);
  return 0;
}

}  // namespace fairlead::kube
