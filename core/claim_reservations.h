// Tracks ResourceClaims on their way to allocation. Bindings of pods wait here until each of their
// claims has its devices and is reserved for them, as in upstream's plugin DynamicResources
// (k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources).
//
//   held ──ReserveClaim for each claim──▶ all done ──▶ the binding goes
//
// - There is one write per claim at a time, for all pods that wait for it then: a gang that shares
//   a claim costs one or two.
// - From the moment an allocation is sent the state has it (Outcome::claims), whatever happens to
//   the pod: devices that may be written already are allocated to no other claim. A definite
//   refusal reverts it; so does the watch, once it has passed the written version.
// - A refusal (another client changed the claim, it is gone, the server refuses) fails the pods of
//   that write; if it was to allocate, all pods that wait for the claim. They are decided again.
// - After an unknown outcome the write is repeated after a pause that doubles. If no pod wants it
//   any more, a deallocation is requested. A refusal proves nothing then: it fails the pods, and
//   the devices stay taken until the watch or an OK decides. NotFound and FailedPrecondition rest
//   on a read of the claim (kube/write/claim_protocol.h) and do decide.
// - A claim that is reserved for a pod with a failed binding stays reserved for the next attempt.
//   If it stays unused, DecisionLoop deallocates it (IdleClaims).
// - Some devices are not ready when they are allocated: their driver reports conditions in the
//   claim's status (scheduler/model/device_conditions.h). A pod for which such a claim is reserved
//   is bound once all of them are True. A condition of failure, or the time-out after the
//   allocation, fails all pods that wait with the claim; nothing is bound with it any more, so it
//   is deallocated at once (WhyHopeless).
//
// Everything follows from claims that the watch shows: a restart loses only held bindings, which
// are decided again.
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: a step costs what changed.
// Determinism: ordered maps; time comes in as an argument.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/model/action.h"
#include "scheduler/model/devices.h"

namespace fairlead::core {

class ClaimReservations {
 public:
  // `backoff`: between attempts. `binding_timeout`: how long after their allocation devices may do
  // to become ready.
  ClaimReservations(Backoff backoff, absl::Duration binding_timeout)
      : rules_{.backoff = backoff}, binding_timeout_(binding_timeout) {}

  // ---- events from the watch, every claim of the cluster
  // The claim as the state is to have it.
  model::ResourceClaim Seen(const model::ResourceClaim& claim);
  void Gone(absl::string_view ns, absl::string_view name);

  // ---- decisions
  struct Claim {
    model::ResourceClaim object;  // as the state has it
    // Its actual or decided allocation; the node is that of the binding.
    model::ClaimAllocation allocation;
  };
  void Hold(model::BindPod bind, std::vector<Claim> claims);
  [[nodiscard]] bool Holds(absl::string_view ns, absl::string_view name) const;
  // True if a write is due, in flight, or not yet shown by the watch.
  [[nodiscard]] bool Knows(const std::string& claim) const { return entries_.contains(claim); }
  // Of a claim that is allocated: why its devices will not become ready, or that they have not in
  // time; or empty.
  [[nodiscard]] std::string WhyHopeless(const model::ResourceClaim& claim, absl::Time now) const;
  // The pod must not be bound any more. An empty uid matches any.
  void Drop(absl::string_view ns, absl::string_view name, absl::string_view uid = {});

  // ---- answers to the actions of Step()
  // `version`: of the claim, if the answer told one. `reserved`: it was a ReserveClaim.
  void Answered(const std::string& claim, bool reserved, const absl::Status& status,
                const std::string& version, absl::Time now);

  // ---- output of a step
  using Failure = BindingPlugin::Failure;
  struct Outcome {
    std::vector<model::Action> actions;        // without ids
    std::vector<model::ResourceClaim> claims;  // the claims that the state must have from now on
    std::vector<model::BindPod> bindings;      // completed; no longer held
    std::vector<Failure> failed;               // no longer held
    struct Preparing {
      std::string ns, name, node;
    };
    std::vector<Preparing> preparing;  // pods that begin to wait for devices to become ready
  };
  Outcome Step(absl::Time now);
  // True if something changed, or a timer is due.
  [[nodiscard]] bool HasWork(absl::Time now) const;
  [[nodiscard]] absl::Time wake_at() const;

 private:
  using Pods = std::map<std::string, model::ReserveClaim::Consumer>;  // by "ns/name"

  struct Entry {
    model::ResourceClaim seen;  // as last shown by the watch
    bool gone = false;
    model::ClaimAllocation allocation;  // the allocation that the pods here rely on
    Pods waiting, writing;
    Pods preparing;                                       // it is reserved for them, and not ready
    absl::Time preparing_since = absl::InfiniteFuture();  // the first of these
    WriteAttempts write;
    bool allocates = false;  // the write in flight or in doubt
    bool resolving = false;  // the write in flight deallocates it
    // The state has the allocation, and the watch does not show it.
    bool assumed = false;
    std::string written;  // the version that shows it; empty: unknown
  };
  struct Held {
    model::BindPod bind;
    std::set<std::string> claims;  // not reserved or not ready yet
    bool told = false;             // that it waits for devices to become ready
  };

  static model::ResourceClaim Assumed(const Entry& entry);
  static bool IsShown(const Entry& entry);
  void Serve(const std::string& key, absl::Time now, Outcome& out);
  void Write(Entry& entry, absl::Time now, Outcome& out) const;
  void Resolve(Entry& entry, absl::Time now, Outcome& out) const;
  // Lets pods go whose devices are ready, and fails those whose devices are not in time.
  void ServePreparing(const std::string& key, Entry& entry, absl::Time now, Outcome& out);
  void TellPreparing(const Entry& entry, Outcome& out);
  [[nodiscard]] std::string WhyLate(absl::string_view awaited) const;
  // When devices that are not ready by then are given up.
  [[nodiscard]] absl::Time DeadlineOf(const Entry& entry) const;
  void WakeAt(const std::string& key, absl::Time at);
  void Unassume(Entry& entry);
  // The claim is reserved for the pod.
  void MarkReserved(const std::string& claim, Entry& entry, const std::string& pod,
                    const model::ReserveClaim::Consumer& consumer);
  void MarkDone(const std::string& claim, const std::string& pod);
  void Fail(const std::string& pod, const std::string& reason);
  void FailAll(const Pods& pods, const std::string& reason);
  // Those whose writes are not under way.
  void FailWaiting(Entry& entry, const std::string& reason);
  void TakeRefusal(Entry& entry, const absl::Status& status);

  const WriteAttempts::Rules rules_;
  const absl::Duration binding_timeout_;
  std::map<std::string, Entry> entries_;  // by "ns/name" of the claim
  std::map<std::string, Held> held_;      // by "ns/name" of the pod
  std::set<std::string> touched_;         // claims to look at
  std::set<std::string> ready_;           // held pods without missing claims
  std::map<std::string, absl::Time> timers_;
  std::vector<model::ResourceClaim> changed_;
  std::vector<Failure> failed_;
};

}  // namespace fairlead::core
