// The plugin for pods' ResourceClaims in a binding: it makes the claim for extended resources, if
// the node gives them so (extended_claims.h), and waits until each claim of the pod has its
// devices, is reserved for the pod, and its devices are ready (claim_reservations.h).
// Thread-safety: the owner's thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/write_attempts.h"
#include "core/claim_reservations.h"
#include "core/extended_claims.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class ClaimPlugin final : public BindingPlugin {
 public:
  struct Options {
    Backoff backoff = {};  // between attempts at a write
    // How long after their allocation devices may do to become ready.
    absl::Duration binding_timeout = absl::InfiniteDuration();
    bool emit_events = false;
  };
  ClaimPlugin(state::ClusterState& state, const Options& options);

  [[nodiscard]] absl::string_view Name() const override { return "DynamicResources"; }
  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override;
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time now) const override;
  [[nodiscard]] absl::Time wake_at() const override {
    return std::min(claims_.wake_at(), extended_.wake_at());
  }
  // The pod is gone.
  void PodGone(absl::string_view ns, absl::string_view name, absl::string_view uid);

  [[nodiscard]] ClaimReservations& claims() { return claims_; }
  // The answer to an action of Advance or FreeIdle (ClaimReservations::Answered).
  void Answered(const std::string& claim, bool reserved, const absl::Status& status,
                const std::string& version, absl::Time now);
  // The answer to a SetExtendedClaim.
  void ExtendedAnswered(const InFlightExtendedClaim& sent, const absl::Status& status,
                        absl::Time now) {
    extended_.Answered(sent, status, now);
  }
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
  // Reserves the devices of the pod's claims, all of which are made.
  absl::Status ReserveDevices(const state::PodRecord& pod, model::BindPod bind);
  // What becomes of bindings whose extended claims are made: those that cannot go on.
  std::vector<Failure> GoOn(BindingPlugin::Progress made);
  [[nodiscard]] bool IsShown(const std::string& claim) const;
  // Tells a pod that it waits for devices to become ready.
  [[nodiscard]] std::vector<model::Action> EventsAbout(
      const std::vector<ClaimReservations::Outcome::Preparing>& pods) const;
  // Its deallocation may be done, and the watch does not show it yet.
  [[nodiscard]] bool IsLeaving(const std::string& claim) const;

  state::ClusterState& state_;
  ClaimReservations claims_;
  ExtendedClaims extended_;
  const WriteAttempts::Rules rules_;  // of deallocations
  const bool emit_events_;
  std::map<std::string, Idle> idle_;  // by key of the claim
  bool freed_ = false;
};

}  // namespace fairlead::core
