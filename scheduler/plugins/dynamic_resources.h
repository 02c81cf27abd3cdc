// DynamicResources: pods with ResourceClaims (resource.k8s.io/v1), upstream's name.
//  Filter: nothing is wrong with the claims themselves (state::ClusterState says what); a claim
//    that is held already, or that another pod carries, is held on this node, and not all pods that
//    use it terminate; and for all that the pod brings along together there is a choice of exact
//    devices (state/device_placement.h; NodeResourcesFit has compared numbers only), beside which
//    what other pods are promised on the node stays possible (state/promised_devices.h). A search
//    for it that takes too long is a refusal with a reason of its own.
//  Score: as upstream (computeScore): 8 for each request with alternatives (firstAvailable) that
//    gets its first one on the node, 7 for the second and so on, normalised by the most that a node
//    has. 0 for a pod whose claims all hold their devices.
// Args as upstream's: bindingTimeout (10m), how long after their allocation devices may do to
// become ready; filterTimeout, checked and without effect. Thread-safety: stateless. Complexity:
// O(devices of the node x requests of the pod), and the bound of state/device_choice.h.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "scheduler/framework/binding_points.h"

namespace fairlead::plugins {

class DynamicResources final : public framework::FilterPlugin,
                               public framework::NormalizedScorePlugin,
                               public framework::PreparingPlugin {
 public:
  static constexpr char kName[] = "DynamicResources";
  static constexpr absl::Duration kDefaultBindingTimeout = absl::Minutes(10);
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    const model::PodSpec& spec = *pod_class.spec;
    return !spec.resource_claims.empty() || !spec.claim_templates.empty() ||
           !spec.claims_to_join.empty() || !spec.claim_problem.empty() || spec.extended->Any();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;

  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override;
  [[nodiscard]] bool ScoresVary(const framework::Context& context) const override;
  void AddMarks(const framework::Context& context, const state::NodeInfo& node,
                const framework::TopologyKeys& by_node, framework::Marks& marks) const override;
  [[nodiscard]] framework::Depends MarksDependOn() const override {
    return framework::Depends::kNodeUsage;
  }
  void ScoreKinds(const framework::Context& context, absl::Span<const framework::Kind> kinds,
                  absl::Span<int64_t> scores) const override;
};

// bindingTimeout of the plugin in these profiles: the longest; upstream's default if it is in none.
absl::StatusOr<absl::Duration> DeviceTimeoutOf(const std::vector<framework::Profile>& profiles);

}  // namespace fairlead::plugins
