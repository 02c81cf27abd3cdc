// The plugin for shared GPUs in a binding: it waits until the devices of the pod's GPU groups are
// known (gpu_reservations.h). Thread-safety: the owner's thread.
#pragma once

#include <string>
#include <utility>

#include "core/gpu_reservations.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class SharePlugin final : public BindingPlugin {
 public:
  SharePlugin(state::ClusterState& state, GpuSharingOptions options, Backoff backoff,
              bool emit_events)
      : state_(state), shares_(std::move(options), backoff), emit_events_(emit_events) {}

  [[nodiscard]] absl::string_view Name() const override { return "GpuSharing"; }
  // Refuses them: their device would be said in their binding.
  [[nodiscard]] bool ServesGuests() const override { return true; }
  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override {
    return !pod.gpu_groups.empty();
  }
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time now) const override { return shares_.HasWork(now); }
  [[nodiscard]] absl::Time wake_at() const override { return shares_.wake_at(); }

  [[nodiscard]] GpuReservations& shares() { return shares_; }
  [[nodiscard]] const GpuReservations& shares() const { return shares_; }
  // The state has changed since the last call: pods may join other GPUs, or a GPU is taken or free.
  [[nodiscard]] bool TakeChanges() { return std::exchange(changes_, false); }

 private:
  state::ClusterState& state_;
  GpuReservations shares_;
  const bool emit_events_;
  bool changes_ = false;
};

}  // namespace fairlead::core
