// GpuSharing: capacity for shares of GPUs, as KAI gives it out.
//  Filter: every device of the share finds a GPU of its own on the node: one that is shared already
//    and has the memory, or a free one (rules in scheduler/state/gpu_devices.h). A GPU that becomes
//    shared needs a pod slot for its reservation pod beside the pod's own. A pod that requests MIG
//    instances is kept off nodes with pods that hold MIG by annotation (KAI's legacy form), as it
//    is unknown which instances those have.
//  Score: kSharedGpuStep if the pod can join a GPU that is shared already, even if it has to
//    wait there; 0 elsewhere (KAI's gpusharingorder). Which GPU of the node: state::PickGpus.
// Args: none. Thread-safety: stateless. Complexity: O(shared GPUs of the node); no allocation
// without `why`.
#pragma once

#include "scheduler/framework/binding_points.h"

namespace fairlead::plugins {

class GpuSharing final : public framework::FilterPlugin,
                         public framework::ScorePlugin,
                         public framework::PreparingPlugin {
 public:
  static constexpr char kName[] = "GpuSharing";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return pod_class.spec->gpu_share.IsSet();
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
  [[nodiscard]] int64_t Step() const override { return framework::kSharedGpuStep; }
};

}  // namespace fairlead::plugins
