// NodeResourcesBalancedAllocation: prefers nodes whose resources would be used to more equal parts
// with the pod than without it. Range 0..100: above 75 if the parts come closer together, below if
// they part. Skips pods that request nothing of the scored resources.
//
// Source: noderesources/balanced_allocation.go of Kubernetes 1.36. The floating-point expressions
// are upstream's, term by term, so that the scores are equal. What is counted are requests, without
// the amounts that containers without requests count in NodeResourcesFit.
//
// Args as upstream's: {"resources": [{"name", "weight"}]}, each name once, each weight 1; without,
// cpu and memory. Thread-safety: immutable. Complexity: O(resources).
#pragma once

#include <memory>
#include <utility>

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/resource_scores.h"

namespace fairlead::plugins {

class NodeResourcesBalancedAllocation final : public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "NodeResourcesBalancedAllocation";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  explicit NodeResourcesBalancedAllocation(std::vector<ResourceWeight> resources)
      : resources_(std::move(resources), ScoredResources::Count::kRequests) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return !resources_.AllUnrequested(*pod_class.spec);
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;

 private:
  ScoredResources resources_;
};

}  // namespace fairlead::plugins
