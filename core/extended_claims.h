// Bindings of pods whose extended resources a claim gives (scheduler/state/extended_claims.h), on
// their way to that claim. The claim is made here, and its devices are reserved as those of any
// other claim (claim_reservations.h).
//
//   held ──SetExtendedClaim──▶ written ──the watch shows the claim──▶ the binding goes on
//
// - One write makes the claim and tells the pod's status of it; before a pod whose status tells of
//   one is bound to a node with a device plugin, the same write takes that back.
// - A refusal fails the binding. After an unknown outcome the write is repeated: it is idempotent.
// - A claim that was made for a binding that failed serves the next one. A pod that is bound
//   otherwise leaves it without devices; it goes with the pod, its owner.
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: a step costs the held bindings.
// Determinism: an ordered map; time comes in as an argument.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/binding_plugin.h"
#include "core/reconcile/in_flight.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

class ExtendedClaims {
 public:
  // `backoff`: between attempts. After a lost answer a refusal is believed: what may have been made
  // serves the next attempt.
  explicit ExtendedClaims(Backoff backoff)
      : rules_{.backoff = backoff, .believes_refusals = true} {}

  void Hold(model::BindPod bind, model::SetExtendedClaim write);
  // The pod must not be bound any more. An empty uid matches any.
  void Drop(absl::string_view ns, absl::string_view name, absl::string_view uid = {});
  void Answered(const InFlightExtendedClaim& sent, const absl::Status& status, absl::Time now);

  // `is_shown`: whether the watch shows that claim ("ns/name").
  using IsShown = absl::FunctionRef<bool(const std::string&)>;
  BindingPlugin::Progress Step(absl::Time now, IsShown is_shown);
  [[nodiscard]] bool HasWork(absl::Time now, IsShown is_shown) const;
  [[nodiscard]] absl::Time wake_at() const;

 private:
  struct Held {
    model::BindPod bind;
    model::SetExtendedClaim write;
    WriteAttempts attempts;
    absl::Time written_at = absl::InfiniteFuture();
    std::string failure;  // not empty: why it cannot be bound
  };
  static bool IsWritten(const Held& held) { return held.attempts.accepted(); }
  static bool IsDue(const Held& held, absl::Time now, IsShown is_shown);
  [[nodiscard]] static std::string ClaimKey(const Held& held);

  const WriteAttempts::Rules rules_;
  std::map<std::string, Held> held_;  // by "ns/name" of the pod
};

}  // namespace fairlead::core
