// Leader election on a coordination.k8s.io/v1 Lease.
//
// Safety rests on local monotonic time alone:
//  - A candidate takes the lease when nobody holds it, or when the record has not changed for the
//    holder's own lease duration, counted from when *this* process first saw it in this form.
//    Remote timestamps are never compared with a clock.
//  - A leader counts from *before* it sent the renewal that the server accepted, and stops being
//    one after `renew_deadline`. Nobody else may take the lease before `lease_duration` after that
//    renewal, so there are lease_duration - renew_deadline between them.
//  - Every write carries the resourceVersion (or is a creation), so that of two takers one gets a
//  409.
//  - IsLeader compares times at the moment of asking: a process that was stopped and goes on knows
//    without any callback that it has lost.
//  - A write of the leader must not be on the wire when another process may lead: TimeLeft bounds
//    the time-out of each request. What the server does with a request after the client gave it up
//    is fenced only by its preconditions (uids, versions).
//  - The lease is taken and renewed only while `alive` says that the process does its work. A
//    process that hangs loses the lease after `renew_deadline`, like one that is gone.
// Defaults and JSON fields are those of k8s.io/client-go/tools/leaderelection.
//
// After a loss the elector stays a candidate; whether the process goes on or exits is the caller's
// affair. `identity` must be different in every process, also after a restart.
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
#include "kube/transport/http.h"

namespace fairlead::kube {

struct LeaseOptions {
  std::string ns, name;
  std::string identity;
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);  // and up to a fifth more, jittered
};

// A request needs this much time to be answered before another process may lead.
inline constexpr absl::Duration kLeaseMarginMin = absl::Seconds(1);

// InvalidArgument, naming the field, unless lease_duration >= renew_deadline + kLeaseMarginMin,
// renew_deadline > 1.2 retry_period > 0 and all names are set. lease_duration must be whole
// seconds.
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
  int64_t withheld = 0;  // renewals that were not sent because `alive` said no
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
  // Not the leader from now on. Then the lease is released, if it is held, so that another need not
  // wait for its expiry; call it only after the last write is answered. `released` is called once,
  // when that is done or has failed, perhaps within Stop.
  void Stop(std::function<void()> released = nullptr);

  [[nodiscard]] bool IsLeader() const;
  // How long a request that is sent now may take: no other process may lead before that. Zero
  // unless this process leads.
  [[nodiscard]] absl::Duration TimeLeft() const;
  [[nodiscard]] LeaseStats GetStats() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::kube
