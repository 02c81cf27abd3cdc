#include "sim/world/network.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "sim/world/network_faults.h"

namespace fairlead::sim::world {
namespace {

using kube::HttpRequest;
using kube::HttpResponse;

constexpr size_t kTrafficClasses = 3;

// Callbacks by due time that can be taken back: the event queue itself forgets nothing, so only the
// first of them is there.
class Agenda : public std::enable_shared_from_this<Agenda> {
 public:
  explicit Agenda(EventQueue* time) : time_(time) {}

  void Add(absl::Time when, uint64_t id, std::function<void()> what) {
    when_[id] = when;
    entries_[{when, id}] = std::move(what);
    Arm();
  }
  void Remove(uint64_t id) {
    const auto found = when_.find(id);
    if (found == when_.end()) return;
    entries_.erase({found->second, id});
    when_.erase(found);
  }
  void Clear() {
    entries_.clear();
    when_.clear();
  }

 private:
  void Arm() {
    if (entries_.empty() || entries_.begin()->first.first >= armed_) return;
    armed_ = entries_.begin()->first.first;
    time_->At(armed_, [weak = weak_from_this(), when = armed_] {
      const auto self = weak.lock();
      if (self != nullptr && self->armed_ == when) self->Run();
    });
  }
  void Run() {
    armed_ = absl::InfiniteFuture();
    while (!entries_.empty() && entries_.begin()->first.first <= time_->now()) {
      const auto first = entries_.begin();
      const std::function<void()> what = std::move(first->second);
      when_.erase(first->first.second);
      entries_.erase(first);
      what();
    }
    Arm();
  }

  EventQueue* time_;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> entries_;
  std::map<uint64_t, absl::Time> when_;
  absl::Time armed_ = absl::InfiniteFuture();
};

// One request from Send or Stream to its last callback, and its way to the server, which may take
// longer.
struct Flight {
  uint64_t id = 0;
  HttpRequest request;
  kube::HttpTransport::Done done;                  // of a call
  std::shared_ptr<kube::StreamObserver> observer;  // of a stream
  absl::Time expires = absl::InfiniteFuture();     // its time-out
  bool open = true;                                // its last callback has not run
  bool silent = false;  // its connection is dead: nothing arrives on either side any more
  Fate fate = Fate::kServed;
  bool coin = false, hangs = false;
  absl::Duration back = absl::ZeroDuration();
  // Of a stream.
  Draws draws{0};
  ApiServer::WatchId watch = 0;
  absl::Time last_delivery = absl::InfinitePast();
  std::shared_ptr<std::string> tail;  // the last chunk, while it is under way
  int chunks_under_way = 0;
};
using FlightPtr = std::shared_ptr<Flight>;

struct Refusal {
  std::string method, prefix, suffix;
  int status = 0;
  absl::Time until;

  [[nodiscard]] bool Matches(const HttpRequest& request) const {
    const absl::string_view whole = request.path;
    const absl::string_view path = whole.substr(0, whole.find('?'));
    return (method.empty() || method == request.method) && absl::StartsWith(whole, prefix) &&
           absl::EndsWith(path, suffix);
  }
};

// The same write, sent again.
std::string KeyOf(const HttpRequest& request) {
  return absl::StrCat(request.method, " ", request.path, "\n", request.body);
}

}  // namespace

class Network::Impl : public std::enable_shared_from_this<Network::Impl> {
 public:
  Impl(EventQueue* of_world, ApiServer* of_all, std::string name, uint64_t start)
      : time(of_world),
        server(of_all),
        client(std::move(name)),
        seed(start),
        draws(start),
        agenda(std::make_shared<Agenda>(of_world)) {}

  uint64_t Begin(HttpRequest request, kube::HttpTransport::Done done,
                 std::shared_ptr<kube::StreamObserver> observer);
  void Cancel(uint64_t id);
  void HalfOpen(kube::TrafficClass traffic, absl::Time until);
  void GoAway(bool calls);
  void Die();

  EventQueue* const time;
  ApiServer* const server;
  const std::string client;
  const uint64_t seed;
  Draws draws;
  NetworkFaults faults;
  std::vector<Refusal> refusals;
  std::vector<WriteRefusal> write_refusals;
  Witness witness;
  std::function<void(const std::string&)> on_early_retry;
  std::map<std::string, absl::Time> not_before;  // writes that were answered 429
  std::array<absl::Time, kTrafficClasses> half_open{absl::InfinitePast(), absl::InfinitePast(),
                                                    absl::InfinitePast()};
  absl::Time partition = absl::InfinitePast();
  bool dead = false;
  uint64_t last_id = 0;
  int64_t requests = 0;
  std::map<uint64_t, FlightPtr> open;
  std::shared_ptr<Agenda> agenda;

 private:
  void Travel(absl::Time when, std::function<void()> what);
  void Arrive(const FlightPtr& flight);
  void OpenStream(const FlightPtr& flight);
  void Lose(const FlightPtr& flight);
  void Answer(const FlightPtr& flight, HttpResponse response);
  void Finish(const FlightPtr& flight, absl::StatusOr<HttpResponse> answer);
  bool Close(const FlightPtr& flight);
  void Silence(const FlightPtr& flight);
  void ToStream(const FlightPtr& flight, std::function<void(kube::StreamObserver&)> what);
  void ToStream(const FlightPtr& flight, std::string data);
  absl::Time NextDelivery(Flight& flight) const;
  void ArriveWrite(const FlightPtr& flight, const std::string& kind);
  void NoteThrottled(const HttpRequest& request, const HttpResponse& response);
  void CheckEarly(const HttpRequest& request);
  [[nodiscard]] const Refusal* FindRefusal(const HttpRequest& request);
  [[nodiscard]] std::optional<WriteRefusal> FindWriteRefusal(const std::string& kind);
};

// A message of either direction; what meets a partition waits for its end, in order.
void Network::Impl::Travel(absl::Time when, std::function<void()> what) {
  time->At(when, [self = shared_from_this(), what = std::move(what)]() mutable {
    if (self->time->now() < self->partition) return self->Travel(self->partition, std::move(what));
    what();
  });
}

uint64_t Network::Impl::Begin(HttpRequest request, kube::HttpTransport::Done done,
                              std::shared_ptr<kube::StreamObserver> observer) {
  const uint64_t id = ++last_id;
  if (dead) return id;
  ++requests;
  CheckEarly(request);
  auto flight = std::make_shared<Flight>();
  flight->id = id;
  flight->request = std::move(request);
  flight->done = std::move(done);
  flight->observer = std::move(observer);
  flight->fate = DrawFate(faults, flight->request.method != "GET", draws);
  flight->coin = draws.Coin();
  flight->hangs = draws.Coin();
  const absl::Duration out = draws.Between(faults.min_delay, faults.max_delay);
  flight->back = draws.Between(faults.min_delay, faults.max_delay);
  flight->draws = Draws(seed ^ (id * 0xD1B54A32D192ED03ULL));
  flight->silent = time->now() < half_open[static_cast<size_t>(flight->request.traffic)];
  open[id] = flight;
  if (flight->request.timeout < absl::InfiniteDuration()) {
    flight->expires = time->now() + flight->request.timeout;
    agenda->Add(flight->expires, id, [this, flight] {
      Finish(flight, absl::DeadlineExceededError(absl::StrCat(
                         flight->request.method, " ", flight->request.path, ": no answer within ",
                         absl::FormatDuration(flight->request.timeout))));
    });
  }
  Travel(time->now() + out, [this, flight] { Arrive(flight); });
  return id;
}

const Refusal* Network::Impl::FindRefusal(const HttpRequest& request) {
  const absl::Time now = time->now();
  refusals.erase(std::remove_if(refusals.begin(), refusals.end(),
                                [now](const Refusal& refusal) { return refusal.until <= now; }),
                 refusals.end());
  for (const Refusal& refusal : refusals) {
    if (refusal.Matches(request)) return &refusal;
  }
  return nullptr;
}

void Network::Impl::Arrive(const FlightPtr& flight) {
  // Its sender gave up and closed the connection while it was held up: it never gets here.
  if (flight->silent || time->now() > flight->expires) return;
  const Refusal* const refusal = FindRefusal(flight->request);
  if (refusal != nullptr) {
    if (refusal->status == 0) return Silence(flight);
    return Answer(flight, RefusalResponse(refusal->status, flight->request));
  }
  if (flight->fate == Fate::kLostRequest) return Lose(flight);
  if (!ReachesServer(flight->fate))
    return Answer(flight, FaultResponse(flight->fate, flight->coin));
  if (flight->observer != nullptr) {
    // A stream commits nothing, so a lost answer and a time-out are both a broken connection.
    if (!flight->open) return;
    if (flight->fate != Fate::kServed) return Lose(flight);
    return OpenStream(flight);
  }
  const std::string kind = witness || !write_refusals.empty() ? WriteKindOf(flight->request) : "";
  if (!kind.empty()) return ArriveWrite(flight, kind);
  HttpResponse response = server->Handle(flight->request, client);
  if (flight->fate == Fate::kLostAnswer) return Lose(flight);
  if (flight->fate == Fate::kTimeoutServed) response = FaultResponse(flight->fate, false);
  Answer(flight, std::move(response));
}

void Network::Impl::ArriveWrite(const FlightPtr& flight, const std::string& kind) {
  const bool known = witness && !dead;
  if (known && !witness(kind, false)) return Silence(flight);
  const std::optional<WriteRefusal> refusal = FindWriteRefusal(kind);
  HttpResponse response;
  if (!refusal.has_value() || refusal->served) response = server->Handle(flight->request, client);
  if (known && (!refusal.has_value() || refusal->served) && !witness(kind, true)) {
    return Silence(flight);
  }
  if (refusal.has_value()) {
    if (refusal->status == 0) return Silence(flight);
    response = RefusalResponse(refusal->status, flight->request);
    if (refusal->retry_after > absl::ZeroDuration()) response.retry_after = refusal->retry_after;
    return Answer(flight, std::move(response));
  }
  if (flight->fate == Fate::kLostAnswer) return Lose(flight);
  if (flight->fate == Fate::kTimeoutServed) response = FaultResponse(flight->fate, false);
  Answer(flight, std::move(response));
}

std::optional<WriteRefusal> Network::Impl::FindWriteRefusal(const std::string& kind) {
  std::erase_if(write_refusals,
                [now = time->now()](const WriteRefusal& r) { return r.until <= now; });
  for (const WriteRefusal& refusal : write_refusals) {
    if (refusal.kind.empty() ? IsLeaseKind(kind) : refusal.kind != kind) continue;
    if (draws.Below(1000) < static_cast<uint64_t>(refusal.chance)) return refusal;
  }
  return std::nullopt;
}

void Network::Impl::NoteThrottled(const HttpRequest& request, const HttpResponse& response) {
  if (request.method == "GET" || response.status != 429) return;
  if (response.retry_after <= absl::ZeroDuration()) return;
  not_before[KeyOf(request)] = time->now() + response.retry_after;
}

void Network::Impl::CheckEarly(const HttpRequest& request) {
  if (not_before.empty() || request.method == "GET") return;
  const auto found = not_before.find(KeyOf(request));
  if (found == not_before.end()) return;
  const absl::Time due = found->second;
  not_before.erase(found);
  if (time->now() >= due || !on_early_retry) return;
  on_early_retry(absl::StrCat(request.method, " ", request.path, " is sent again ",
                              absl::FormatDuration(due - time->now()),
                              " before the Retry-After of its 429 is over"));
}

void Network::Impl::Lose(const FlightPtr& flight) {
  // A call may hang until its time-out; a stream has none.
  if (flight->hangs && flight->request.timeout < absl::InfiniteDuration()) return Silence(flight);
  Travel(time->now() + flight->back, [this, flight] {
    Finish(flight,
           absl::UnavailableError(absl::StrCat(flight->request.method, " ", flight->request.path,
                                               ": connection reset by peer")));
  });
}

void Network::Impl::Answer(const FlightPtr& flight, HttpResponse response) {
  if (!flight->open) return;
  Travel(time->now() + flight->back, [this, flight, response = std::move(response)]() mutable {
    if (flight->silent || !flight->open) return;
    NoteThrottled(flight->request, response);
    if (flight->observer != nullptr) {
      flight->observer->OnHeaders(response.status, response.content_type);
      if (flight->open && !response.body.empty()) flight->observer->OnData(response.body);
    }
    Finish(flight, std::move(response));
  });
}

void Network::Impl::Finish(const FlightPtr& flight, absl::StatusOr<HttpResponse> answer) {
  if (!Close(flight) || dead) return;
  if (flight->observer == nullptr) {
    const auto done = std::move(flight->done);
    done(std::move(answer));
  } else if (answer.ok()) {
    flight->observer->OnDone(absl::OkStatus(), answer->retry_after);
  } else {
    flight->observer->OnDone(answer.status(), absl::ZeroDuration());
  }
}

// False if it was closed before.
bool Network::Impl::Close(const FlightPtr& flight) {
  if (!flight->open) return false;
  flight->open = false;
  open.erase(flight->id);
  agenda->Remove(flight->id);
  if (flight->watch != 0) server->CloseWatch(std::exchange(flight->watch, 0));
  return true;
}

void Network::Impl::Silence(const FlightPtr& flight) {
  flight->silent = true;
  if (flight->watch != 0) server->CloseWatch(std::exchange(flight->watch, 0));
}

// ---- streams ------------------------------------------------------------------------------------

absl::Time Network::Impl::NextDelivery(Flight& flight) const {
  const absl::Time at =
      time->now() + flight.draws.Between(faults.min_watch_delay, faults.max_watch_delay);
  flight.last_delivery = std::max(flight.last_delivery, at);
  return flight.last_delivery;
}

void Network::Impl::ToStream(const FlightPtr& flight,
                             std::function<void(kube::StreamObserver&)> what) {
  Travel(NextDelivery(*flight), [flight, what = std::move(what)] {
    if (!flight->silent && flight->open) what(*flight->observer);
  });
  flight->tail = nullptr;
}

// Frames that arrive at one instant arrive as one piece.
void Network::Impl::ToStream(const FlightPtr& flight, std::string data) {
  const absl::Time former = flight->last_delivery;
  if (flight->tail != nullptr && NextDelivery(*flight) == former) {
    flight->tail->append(data);
    return;
  }
  if (flight->tail == nullptr) NextDelivery(*flight);
  auto chunk = std::make_shared<std::string>(std::move(data));
  flight->tail = chunk;
  ++flight->chunks_under_way;
  Travel(flight->last_delivery, [flight, chunk] {
    --flight->chunks_under_way;
    if (flight->tail == chunk) flight->tail = nullptr;
    if (!flight->silent && flight->open) flight->observer->OnData(*chunk);
  });
}

void Network::Impl::OpenStream(const FlightPtr& flight) {
  ApiServer::WatchSink sink;
  const std::weak_ptr<Impl> weak = weak_from_this();
  sink.headers = [weak, flight](int status, const std::string& content_type) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->ToStream(flight, [status, content_type](kube::StreamObserver& observer) {
      observer.OnHeaders(status, content_type);
    });
  };
  sink.data = [weak, flight](std::string data) {
    if (const auto self = weak.lock()) self->ToStream(flight, std::move(data));
  };
  sink.end = [weak, flight] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    flight->watch = 0;
    self->Travel(self->NextDelivery(*flight), [weak, flight] {
      const auto impl = weak.lock();
      if (impl != nullptr && !flight->silent) impl->Finish(flight, HttpResponse{});
    });
  };
  const ApiServer::WatchId id = server->OpenWatch(flight->request, std::move(sink));
  flight->watch = id;
}

// ---- what happens to all of them ----------------------------------------------------------------

void Network::Impl::Cancel(uint64_t id) {
  const auto found = open.find(id);
  if (found == open.end()) return;
  const FlightPtr flight = found->second;
  Close(flight);
  time->After(absl::ZeroDuration(), [weak = weak_from_this(), flight] {
    const auto self = weak.lock();
    if (self == nullptr || self->dead) return;
    const absl::Status cancelled = absl::CancelledError("the call was cancelled");
    if (flight->observer != nullptr) {
      flight->observer->OnDone(cancelled, absl::ZeroDuration());
    } else {
      flight->done(cancelled);
    }
  });
}

void Network::Impl::HalfOpen(kube::TrafficClass traffic, absl::Time until) {
  half_open[static_cast<size_t>(traffic)] = until;
  for (const auto& [id, flight] : open) {
    if (flight->request.traffic == traffic) Silence(flight);
  }
}

void Network::Impl::GoAway(bool calls) {
  const bool clean = draws.Coin();
  std::vector<FlightPtr> cut;
  for (const auto& [id, flight] : open) {
    if ((calls || flight->observer != nullptr) && !flight->silent) cut.push_back(flight);
  }
  for (const FlightPtr& flight : cut) {
    std::string half;
    // Nothing arrives before what was sent before it.
    if (calls && flight->tail != nullptr && flight->chunks_under_way == 1)
      half = flight->tail->substr(0, flight->tail->size() / 2);
    Silence(flight);
    time->After(absl::ZeroDuration(), [weak = weak_from_this(), flight, clean, half] {
      const auto self = weak.lock();
      if (self == nullptr || self->dead) return;
      if (!half.empty() && flight->open) flight->observer->OnData(half);
      if (clean && flight->observer != nullptr) return self->Finish(flight, HttpResponse{});
      self->Finish(flight, absl::UnavailableError("http2: server sent GOAWAY and closed the "
                                                  "connection"));
    });
  }
}

void Network::Impl::Die() {
  dead = true;
  agenda->Clear();
  const std::map<uint64_t, FlightPtr> all = std::move(open);
  open.clear();
  for (const auto& [id, flight] : all) Close(flight);
}

Network::Network(EventQueue* time, ApiServer* server, std::string client, uint64_t seed)
    : impl_(std::make_shared<Impl>(time, server, std::move(client), seed)) {}
Network::~Network() { impl_->Die(); }

void Network::SetFaults(const NetworkFaults& faults) { impl_->faults = faults; }

void Network::Refuse(std::string method, std::string path_prefix, std::string path_suffix,
                     int status, absl::Time until) {
  impl_->refusals.push_back(
      {std::move(method), std::move(path_prefix), std::move(path_suffix), status, until});
}

void Network::HalfOpen(kube::TrafficClass traffic, absl::Time until) {
  impl_->HalfOpen(traffic, until);
}
void Network::RefuseWrites(WriteRefusal refusal) {
  impl_->write_refusals.push_back(std::move(refusal));
}
void Network::OnWrite(Witness witness) { impl_->witness = std::move(witness); }
void Network::OnEarlyRetry(std::function<void(const std::string&)> listener) {
  impl_->on_early_retry = std::move(listener);
}
void Network::GoAway(bool calls) { impl_->GoAway(calls); }
void Network::Partition(absl::Time until) { impl_->partition = until; }
void Network::Die() { impl_->Die(); }

Network::Id Network::Send(HttpRequest request, Done done) {
  return impl_->Begin(std::move(request), std::move(done), nullptr);
}

Network::Id Network::Stream(HttpRequest request, std::shared_ptr<kube::StreamObserver> observer) {
  return impl_->Begin(std::move(request), nullptr, std::move(observer));
}

void Network::Cancel(Id id) { impl_->Cancel(id); }

Network::Id Network::After(absl::Duration delay, std::function<void()> callback) {
  const Id id = ++impl_->last_id;
  if (impl_->dead) return id;
  impl_->agenda->Add(impl_->time->now() + std::max(delay, absl::ZeroDuration()), id,
                     std::move(callback));
  return id;
}

void Network::CancelTimer(Id id) { impl_->agenda->Remove(id); }

int64_t Network::requests() const { return impl_->requests; }

bool Network::RunWhileWaiting() {
  FAIRLEAD_CHECK(impl_->time->next() < absl::InfiniteFuture(),
                 "Call waits for an answer in a world in which nothing happens any more");
  impl_->time->RunUntil(impl_->time->next());
  return true;
}

}  // namespace fairlead::sim::world
