// The plugin for pods' ResourceClaims in a binding: it waits until each claim of the pod has its
// devices and is reserved for the pod (claim_reservations.h). Thread-safety: the owner's thread.
#pragma once

#include <map>
#include <string>

#include "base/write_attempts.h"
#include "core/claim_reservations.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class ClaimPlugin final : public BindingPlugin {
 public:
  ClaimPlugin(state::ClusterState& state, Backoff backoff);

  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override;
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time now) const override { return claims_.HasWork(now); }
  [[nodiscard]] absl::Time wake_at() const override { return claims_.wake_at(); }

  [[nodiscard]] ClaimReservations& claims() { return claims_; }
  // The answer to an action of Advance or FreeIdle (ClaimReservations::Answered).
  void Answered(const std::string& claim, bool reserved, const absl::Status& status,
                const std::string& version, absl::Time now);
  // True if devices became free since the last call, so that something new may be decided.
  [[nodiscard]] bool TakeFreed() { return std::exchange(freed_, false); }
  // Deallocates claims that their pods have not used for a while. Lowers `wake_at` to the next time
  // with something to do.
  std::vector<model::Action> FreeIdle(absl::Time now, absl::Time& wake_at);
  // When FreeIdle has something to send; infinite future if only an answer or an event decides.
  [[nodiscard]] absl::Time idle_wake_at() const;

 private:
  struct Idle {
    absl::Time since;
    WriteAttempts deallocation;
    [[nodiscard]] absl::Time due() const;
  };
  // Its deallocation may be done, and the watch does not show it yet.
  [[nodiscard]] bool IsLeaving(const std::string& claim) const;

  state::ClusterState& state_;
  ClaimReservations claims_;
  const WriteAttempts::Rules rules_;  // of deallocations
  std::map<std::string, Idle> idle_;  // by key of the claim
  bool freed_ = false;
};

}  // namespace fairlead::core
