// NodeResourcesFit: every resource that the pod requests, and a pod slot, must be free on the node,
// in the sense of the capacity asked about. All that is lacking is reported, with how much. A
// request above what the node has in all is not cured by evictions.
//
// Its score, 0..100, is upstream's: how little (or how much) of the scored resources would be in
// use with the pod. CPU and memory are counted by model::ScoringRequests, so the state has to sum
// them (StateOptions::sum_scoring_requests); what ends on the node is in use, and promises are not.
//
// Args as upstream's: {"ignoredResources": [names], "ignoredResourceGroups": [prefixes before the
// slash], "scoringStrategy": {"type": "LeastAllocated" | "MostAllocated" |
// "RequestedToCapacityRatio", "resources": [{"name", "weight": 1..100}],
// "requestedToCapacityRatio": {"shape": [{"utilization": 0..100, "score": 0..10}]}}}. Only extended
// resources can be ignored, and only by the filter. Without a strategy it is LeastAllocated of cpu
// and memory. Thread-safety: immutable. Complexity: O(resources); the filter allocates nothing
// without `why`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/resource_scores.h"

namespace fairlead::plugins {

class NodeResourcesFit final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "NodeResourcesFit";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  NodeResourcesFit(std::vector<std::string> ignored, std::vector<std::string> ignored_groups,
                   ScoringStrategy strategy)
      : ignored_(std::move(ignored)),
        ignored_groups_(std::move(ignored_groups)),
        strategy_(std::move(strategy)),
        scored_(strategy_.resources, ScoredResources::Count::kScoringRequests) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ChecksAmountOf(const state::ClusterState& state,
                                    model::ResourceIndex resource) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass&) const override {
    return !scored_.empty();
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;

 private:
  [[nodiscard]] bool Ignored(absl::string_view resource) const;

  std::vector<std::string> ignored_, ignored_groups_;
  ScoringStrategy strategy_;
  ScoredResources scored_;
};

}  // namespace fairlead::plugins
