// The profile's own plugins in a binding (framework/binding_points.h), as two stages of the
// pipeline: kPermit runs Reserve and Permit, before anything is written for the pod; kPreBind runs
// PreBind, when claims, shares and volumes are there.
//
// A plugin that lets a pod wait is asked again in every step, and when it said at the latest.
// Unreserve is told once to every plugin whose Reserve was asked, however the binding ends but by
// success, also if the pod is gone or was bound elsewhere.
//
// Ownership: borrows state and framework. Thread-safety: the owner's thread. Determinism: pods are
// asked about in the order of Reserve, plugins in that of the profile. Complexity: O(waiting pods *
// plugins) a step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/reconcile/binding_plugin.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class FrameworkStage final : public BindingPlugin {
 public:
  enum class Points : uint8_t { kPermit, kPreBind };

  FrameworkStage(const state::ClusterState& state, Points points)
      : state_(state), points_(points) {}
  // Without it no pod needs the stage. The framework outlives it.
  void Use(const framework::Framework& framework) {
    if (framework.HasBindingPoints()) framework_ = &framework;
  }

  [[nodiscard]] bool ServesGuests() const override { return true; }
  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override;
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time) const override { return !rows_.empty(); }
  [[nodiscard]] absl::Time wake_at() const override { return wake_at_; }

  // The binding was accepted, or the watch shows it. kPermit: ends what was reserved, and tells
  // PostBind.
  void Bound(state::PodId pod);
  // The watch showed the pod, or it is about to be removed. kPermit: it is unreserved if it does
  // not get its node any more.
  void PodSeen(state::PodId pod);
  void PodGoing(state::PodId pod);

  // Pods that are reserved and not bound.
  [[nodiscard]] size_t reserved() const { return reserved_.size(); }

 private:
  // A pod that waits.
  struct Row {
    model::BindPod bind;
    uint64_t turn = 0;                          // in the order of Reserve
    bool reserved = false;                      // Reserve was asked
    size_t next = 0;                            // the plugin that is to be asked
    absl::Time since = absl::InfiniteFuture();  // of that; infinite future: not asked yet
  };
  // What plugins know of a pod.
  struct Reserved {
    framework::PodOnNode pod;
    std::vector<framework::ReservePlugin*> plugins;  // asked, in order
  };

  [[nodiscard]] state::PodId Find(const model::BindPod& bind) const;
  [[nodiscard]] const framework::BindingPoints& PointsOf(const state::PodRecord& pod) const {
    return framework_->PointsOf(state_.pod_class(pod.pod_class));
  }
  framework::Progress AskReserve(const state::PodRecord& pod, absl::Time now);
  // Asks the plugins from `row.next` on. kDone: all have let it pass.
  framework::Progress Ask(state::PodId pod, Row& row, absl::Time now);
  template <typename Plugin, typename Question>
  framework::Progress AskEach(const std::vector<Plugin*>& plugins, state::PodId pod, Row& row,
                              absl::Time now, Question question);
  void EndReserved(const std::string& key);

  const state::ClusterState& state_;
  const Points points_;
  const framework::Framework* framework_ = nullptr;
  std::map<std::string, Row> rows_;           // by key of the pod
  std::map<std::string, Reserved> reserved_;  // the same
  uint64_t turns_ = 0;
  absl::Time wake_at_ = absl::InfiniteFuture();
  std::vector<Ran> ran_;  // since the last Advance began
};

}  // namespace fairlead::core
