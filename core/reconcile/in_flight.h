// Actions in flight: sent and not answered yet, except bindings (bindings.h), and actions to be
// repeated because their outcome is unknown (base/write_attempts.h).
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: O(log retries) per answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "base/write_attempts.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

// The part of an action that its answer needs: a whole action is several times as large, and
// thousands are in flight at once.
struct InFlightEviction {
  model::EvictPod evict;
  int unknown = 0;  // answers so far that left the outcome open
};
struct InFlightVerdict {
  std::string ns, name;
  bool group = false;
};
struct InFlightRequest {
  std::string name;
};
struct InFlightStatus {
  model::NodeRequest request;
};
using InFlightProvider = hook::ProviderCall;
// About shared GPUs (core/gpu_reservations.h).
struct InFlightReservation {
  std::string node, group;
};
struct InFlightPodDeletion {
  std::string name;
};
struct InFlightConfigMap {
  std::string ns, pod, uid, name;
};
struct InFlightAnnotations {
  model::SetPodGroupAnnotations write;
  int unknown = 0;  // failed attempts
};
struct InFlightUsage {};
struct InFlightTaint {
  std::string node_uid;
  bool present = false;
};
struct InFlightRequestEnd {
  std::string name, uid;
};
// About ResourceClaims (core/claim_reservations.h).
struct InFlightClaim {
  std::string key;        // "ns/name"
  bool reserved = false;  // a ReserveClaim, else a DeallocateClaim
};
using InFlight = std::variant<InFlightEviction, InFlightVerdict, InFlightRequest, InFlightProvider,
                              InFlightReservation, InFlightPodDeletion, InFlightConfigMap,
                              InFlightClaim, InFlightStatus, InFlightAnnotations, InFlightUsage,
                              InFlightTaint, InFlightRequestEnd>;

class InFlightActions {
 public:
  explicit InFlightActions(Backoff backoff) : backoff_(backoff) {}

  // The action was sent. `unknown`: the number of earlier unknown outcomes.
  void Sent(const model::Action& action, int unknown = 0);
  // What a TerminateNode is about: the action has no uid.
  void SetCall(uint64_t action_id, const InFlightProvider& call);
  // The subject of the answer; none if its answer makes no difference.
  std::optional<InFlight> Take(uint64_t action_id);

  using Retry = std::variant<InFlightEviction, InFlightAnnotations>;
  // Schedules a repetition after a pause, after another failure.
  template <typename T>
  void RetryLater(T again, absl::Time now) {
    const absl::Time at = now + backoff_.Pause(++again.unknown);
    retries_[at].emplace_back(std::move(again));
  }
  // The due repetitions, in the order of their times, then of sending.
  std::vector<Retry> TakeDue(absl::Time now);
  // Infinite future if there is nothing.
  [[nodiscard]] absl::Time next_retry() const;
  [[nodiscard]] size_t size() const { return in_flight_.size(); }
  // O(times at which some are due).
  [[nodiscard]] size_t retries() const;

 private:
  const Backoff backoff_;
  absl::flat_hash_map<uint64_t, InFlight> in_flight_;
  std::map<absl::Time, std::vector<Retry>> retries_;
};

}  // namespace fairlead::core
