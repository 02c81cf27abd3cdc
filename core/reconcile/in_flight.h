// Which answer belongs to what: the subjects of actions that were sent and not answered yet, except
// bindings (bindings.h) and verdicts (status_updater.h). The attempts are kept with what is desired
// (base/write_attempts.h).
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: O(1).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "autoscale-hook/hook.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

// The part of an action that its answer needs: a whole action is several times as large, and
// thousands are in flight at once.
struct InFlightEviction {
  std::string uid;
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
  std::string uid;  // of the PodGroup
};
struct InFlightGroupCondition {
  std::string group, uid;  // of the NativePodGroup: "ns/name"
};
struct InFlightConditions {
  model::Kind kind;
  std::string object, uid;  // "ns/name", or the name
};
struct InFlightKaiStatus {
  model::Kind kind;
  std::string object, uid;  // "ns/name", or the name
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
// The claim that gives a pod its extended resources (core/extended_claims.h).
struct InFlightExtendedClaim {
  std::string pod, uid;  // "ns/name"
  std::string claim;
};
// What a PersistentVolumeClaim is to be given (core/volume_plugin.h).
struct InFlightVolume {
  std::string claim;  // "ns/name"
};
// What scheduler extenders are asked (core/extender_plugin.h).
struct InFlightAsk {
  uint64_t number = 0;    // of its kind
  bool preempts = false;  // about evictions
};
// By which pods are grouped (core/pod_grouper.h).
struct InFlightRead {
  model::ReadObject object;
};
struct InFlightGroup {
  std::string key;  // "ns/name"
};
// Of core/suspensions.h.
struct InFlightSuspension {
  uint64_t number = 0;
};
struct InFlightSuspendedList {
  std::string group, kind;
};
struct InFlightGroupOfPod {
  std::string key, uid;  // "ns/name" of the pod
};
using InFlight =
    std::variant<InFlightEviction, InFlightRequest, InFlightProvider, InFlightReservation,
                 InFlightPodDeletion, InFlightConfigMap, InFlightClaim, InFlightVolume,
                 InFlightStatus, InFlightAnnotations, InFlightUsage, InFlightTaint,
                 InFlightRequestEnd, InFlightAsk, InFlightGroupCondition, InFlightExtendedClaim,
                 InFlightConditions, InFlightRead, InFlightGroup, InFlightGroupOfPod,
                 InFlightKaiStatus, InFlightSuspension, InFlightSuspendedList>;

class InFlightActions {
 public:
  void Sent(const model::Action& action);
  // What a TerminateNode is about: the action has no uid.
  void SetCall(uint64_t action_id, const InFlightProvider& call);
  // The subject of the answer; none if its answer makes no difference.
  std::optional<InFlight> Take(uint64_t action_id);
  // Without calls of the provider.
  [[nodiscard]] size_t size() const { return in_flight_.size() - open_calls_; }
  [[nodiscard]] size_t open_calls() const { return open_calls_; }

 private:
  // The API server, or its silence, answers every write; a provider may never answer. The answer to
  // a call that so many others followed is not waited for.
  static constexpr size_t kMostCalls = 10'000;

  absl::flat_hash_map<uint64_t, InFlight> in_flight_;
  std::deque<uint64_t> calls_;  // of the provider, the oldest first; some were answered
  size_t open_calls_ = 0;
};

}  // namespace fairlead::core
