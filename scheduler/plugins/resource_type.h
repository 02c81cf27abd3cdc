// ResourceType: pods that want no GPU prefer nodes that have none, so that GPU nodes stay free for
// those who need them (KAI's plugin of the name). Score: kResourceTypeStep on such nodes, 0 on
// others. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class ResourceType final : public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "ResourceType";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return pod_class.charge[model::kGpu] == 0 && !pod_class.spec->gpu_share.IsSet();
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
};

}  // namespace fairlead::plugins
