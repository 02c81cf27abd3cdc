// GpuShareCheck: pods that ask for a share of a GPU (annotations gpu-fraction, gpu-memory) are
// refused everywhere, with a reason that says so: counting them as no GPU at all would overload
// devices. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class GpuShareCheck final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "GpuShareCheck";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return pod_class.spec->gpu_share.IsSet();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
