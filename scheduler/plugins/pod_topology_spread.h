// PodTopologySpread (upstream: pkg/scheduler/framework/plugins/podtopologyspread). Constraints of
// the pod itself; upstream's cluster-wide default constraints need Services and ReplicaSets and are
// not applied.
//
// Filter, for each constraint DoNotSchedule:
//   matching pods in the node's domain + (1 if the pod matches itself) - least of all domains <=
//   maxSkew where the least is 0 with fewer domains than minDomains. Domains are those of the nodes
//   that have the keys of all such constraints and that the pod's node affinity and (if
//   nodeTaintsPolicy is Honor) tolerations allow. Pods of the same namespace count, promised ones
//   too, terminating ones do not.
// Score, mean over the constraints ScheduleAnyway: 100 in the domain with the fewest matching pods,
// 0 in the one with the most, linear in between, 0 without the key; times kPreferenceStep. Upstream
// weighs constraints by the logarithm of their number of domains; the order within one constraint
// is the same.
//
// Nodes that are ordered or not usable yet are domains for Room::kFuture only: an empty zone to
// come must not hold pods back now. Room::kEmpty asks for the keys alone. Thread-safety: locks its
// cache. Complexity: O((nodes + pods) * constraints) once a class and state version, then
// O(constraints) a node.
#pragma once

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

class PodTopologySpread final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "PodTopologySpread";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kCluster;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return HasConstraint(pod_class, /*hard=*/true);
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return HasConstraint(pod_class, /*hard=*/false);
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;

 private:
  struct Domains {
    std::map<std::string, int64_t> pods;  // matching pods by value of the topology key
    int64_t least = 0, most = 0;
  };
  using ByConstraint = std::vector<Domains>;  // as in the spec
  static bool HasConstraint(const state::PodClass& pod_class, bool hard);
  static ByConstraint Count(const framework::Context& context);

  mutable ClassCache<ByConstraint> cache_;
};

}  // namespace fairlead::plugins
