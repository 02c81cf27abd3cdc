// ResourceType: pods that request no GPU leave the nodes with GPUs to pods that do.
//  - Score: kResourceTypeStep on nodes without GPUs, 0 on others (KAI's plugin of the name).
//  - Filter, only with keepOffGpuNodes: nodes with GPUs refuse such pods (KAI has no such setting).
// Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class ResourceType final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "ResourceType";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  explicit ResourceType(bool keep_off_gpu_nodes) : keep_off_gpu_nodes_(keep_off_gpu_nodes) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return keep_off_gpu_nodes_ && ScoreApplies(pod_class);
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return pod_class.charge[model::kGpu] == 0 && !pod_class.spec->gpu_share.IsSet();
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
  [[nodiscard]] int64_t Step() const override { return framework::kResourceTypeStep; }

 private:
  const bool keep_off_gpu_nodes_;
};

}  // namespace fairlead::plugins
