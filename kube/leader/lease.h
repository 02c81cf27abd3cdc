// Leader election on a coordination.k8s.io/v1 Lease.
//
// Safety depends on local monotonic time alone:
// - A candidate takes the lease if it has no holder, or if the record has not changed for the
//   holder's own lease duration, counted from when *this* process first saw this record. Remote
//   timestamps are never compared with a clock.
// - A leader counts from *before* it sent the renewal that the server accepted, and ceases to lead
//   after `renew_deadline`. No other process may take the lease before `lease_duration` after that
//   renewal. So lease_duration - renew_deadline lie between two leaders.
// - Every write has the resourceVersion as precondition (or is a creation), so of two takers one
//   gets a 409.
// - IsLeader compares times when it is called: a process that was stopped and continues knows
//   without any callback that it has lost.
// - A write of the leader must not be on the wire when another process may lead: TimeLeft bounds
//   the time-out of each request. After the client has given up a request, only its preconditions
//   (uids, versions) fence it.
// - The lease is taken and renewed only while `alive` says that the process does its work. A
//   process that hangs loses the lease after `renew_deadline`, as does one that is gone.
// Defaults and JSON fields are those of k8s.io/client-go/tools/leaderelection.
//
// After a loss the elector stays a candidate; the caller decides whether the process continues or
// exits. `identity` must be different in every process, also after a restart.
//
// Thread-safety: every method from any thread; IsLeader and TimeLeft take no lock. The callbacks
// run without the elector's lock, on the I/O thread or in Stop, and alternate, beginning with
// on_gain. Transport, timers and clock must outlive the elector; later callbacks are ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/lease_times.h"
#include "kube/transport/http.h"

namespace fairlead::kube {

struct LeaseOptions {
  std::string ns, name;
  std::string identity;
  LeaseTimes times = {};
};

// InvalidArgument, naming the field, unless the times are valid (CheckLeaseTimes) and all names are
// set.
absl::Status ValidateLeaseOptions(const LeaseOptions& options);

struct LeaseCallbacks {
  std::function<void()> on_gain, on_loss;
  // Whether the process does its work; none: always. Called under the elector's lock, so it must be
  // quick and must not call back.
  std::function<bool()> alive = nullptr;
};

struct LeaseStats {
  bool leader = false;
  std::string holder;  // as last seen
  int64_t gains = 0, losses = 0, errors = 0;
  int64_t withheld = 0;  // renewals that were not sent because `alive` was false
  std::string last_error;
};

class LeaderElector {
 public:
  // The options must be valid.
  LeaderElector(HttpTransport& transport, Timers& timers, const Clock& clock, LeaseOptions options,
                LeaseCallbacks callbacks);
  ~LeaderElector();  // stops without releasing
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // Ends leadership, then releases the lease if it is held, so that another process need not wait
  // for its expiry. Call it only after the last write is answered. Calls `released` once, when that
  // is done or has failed, perhaps within Stop.
  void Stop(std::function<void()> released = nullptr);

  [[nodiscard]] bool IsLeader() const;
  // The time-out for a request that is sent now: no other process may lead before its end. Zero
  // unless this process leads.
  [[nodiscard]] absl::Duration TimeLeft() const;
  [[nodiscard]] LeaseStats GetStats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::kube
