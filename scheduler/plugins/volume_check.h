// VolumeCheck: pods that need PersistentVolumeClaims are refused everywhere, with a reason that
// says so. Binding them without looking at the volumes' topology would put them on nodes where they
// can never start. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class VolumeCheck final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "VolumeCheck";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->pvc_names.empty();
  }
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
