// NodeResourcesFit: every resource that the pod requests, and a pod slot, must be free on the node,
// in the sense of the capacity asked about. All that is lacking is reported, with how much. A
// request above what the node has in all is not cured by evictions.
//
// Args as upstream's, without scoringStrategy (NodePlacement scores): {"ignoredResources": [names],
// "ignoredResourceGroups": [prefixes before the slash]}; only extended resources can be ignored.
// Thread-safety: immutable. Complexity: O(resources); without `why` it allocates nothing.
#pragma once

#include <string>
#include <vector>

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeResourcesFit final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodeResourcesFit";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  NodeResourcesFit(std::vector<std::string> ignored, std::vector<std::string> ignored_groups)
      : ignored_(std::move(ignored)), ignored_groups_(std::move(ignored_groups)) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ChecksAmountOf(const state::ClusterState& state,
                                    model::ResourceIndex resource) const override;

 private:
  [[nodiscard]] bool Ignored(absl::string_view resource) const;

  std::vector<std::string> ignored_, ignored_groups_;
};

}  // namespace fairlead::plugins
