// What one replica has of the world: the HTTP transport and the timers behind kube/, over the
// simulated API server.
//
// A request travels for a while, is handled, and its answer travels back. On the way it may be lost
// before it is handled, its answer may be lost after, it may be answered 429, 500, 503 or 504 (the
// last with or without having been handled), or it may hang until its time-out because its
// connection is half open. An answer may be another one than the server's, also though it has done
// what was asked. Traffic classes have connections of their own, as in the real transport;
// watches of one connection end together (GOAWAY), and kinds are not ordered between each other.
//
// Ownership: borrows time and server. Thread-safety: none, one thread; callbacks run from the event
// queue, never from within a call. Determinism: delays and faults are drawn from the seed in the
// order of requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

// What goes wrong, in chances of 1/1000 a request, and for how long. All zero: a network as on a
// good day.
struct NetworkFaults {
  int lose_request =
      0;  // before it is handled: Unavailable at once, or DeadlineExceeded at its time-out
  int lose_answer = 0;      // after it was handled
  int throttle = 0;         // 429 with Retry-After
  int server_error = 0;     // 500 or 503, not handled
  int gateway_timeout = 0;  // 504, handled or not
  int conflict = 0;         // 409 for a write, though there was none
  absl::Duration min_delay = absl::Milliseconds(1), max_delay = absl::Milliseconds(5);  // each way
  absl::Duration min_watch_delay = absl::Milliseconds(1),
                 max_watch_delay = absl::Milliseconds(20);  // drawn per stream and frame
};

// Answers to writes of one kind (network_faults.h, WriteKindOf) that are not the API server's.
struct WriteRefusal {
  std::string kind;     // empty: every kind but the lease's
  int status = 500;     // 0: none, the connection is dead
  int chance = 1000;    // of 1000
  bool served = false;  // though the server has done it
  absl::Duration retry_after = absl::ZeroDuration();
  absl::Time until;
};

class Network final : public kube::HttpTransport, public kube::Timers {
 public:
  using Id = uint64_t;
  // `steady` is the replica's: time-outs and timers count on it. `client` names the replica in
  // commits.
  Network(EventQueue* time, ApiServer* server, std::string client, uint64_t seed);
  ~Network() override;

  void SetFaults(const NetworkFaults& faults);
  // Requests whose method and path match are refused with this status (403, 404, 500, ...) until
  // `until`; 0: hang till their time-out. Matched by prefix of the path and, unless empty, method.
  // For "pods answer 403", "status of NodeRequests is refused".
  void Refuse(std::string method, std::string path_prefix, std::string path_suffix, int status,
              absl::Time until);
  // Connections of this class go dead: what is open on them, and what is begun until `until`,
  // hangs; no end, no data.
  void HalfOpen(kube::TrafficClass traffic, absl::Time until);
  void RefuseWrites(WriteRefusal refusal);
  // All streams end at once. `calls`: and all calls, also those that the server has answered
  // already; a chunk of a stream that is under way arrives by half.
  void GoAway(bool calls = false);
  // Called when a write arrives at the server, and with `handled` when the server has done it.
  // False: the sender has died: the write is lost, or its answer.
  using Witness = std::function<bool(const std::string& kind, bool handled)>;
  void OnWrite(Witness witness);
  // Called with each write that is sent again before the Retry-After of its 429 is over.
  void OnEarlyRetry(std::function<void(const std::string& what)> listener);
  // Nothing arrives and nothing leaves until then (the process is paused, or its network is gone).
  void Partition(absl::Time until);
  // The process died: no callback comes any more; what was sent may still arrive. Irrevocable.
  void Die();

  // ---- kube::HttpTransport, kube::Timers
  Id Send(kube::HttpRequest request, Done done) override;
  Id Stream(kube::HttpRequest request, std::shared_ptr<kube::StreamObserver> observer) override;
  void Cancel(Id id) override;
  Id After(absl::Duration delay, std::function<void()> callback) override;
  void CancelTimer(Id id) override;

  [[nodiscard]] int64_t requests() const;  // sent so far

 private:
  bool RunWhileWaiting() override;
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::sim::world
