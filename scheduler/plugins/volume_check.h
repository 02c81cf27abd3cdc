// VolumeCheck: pods that need PersistentVolumeClaims are refused everywhere, with a reason that
// says so; so are pods that need ResourceClaims unless StateOptions::place_device_claims is set
// (DynamicResources judges them then). Binding them without looking at the volumes' topology or at
// device allocation would put them on nodes where they can never start. Thread-safety: stateless.
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
    return !pod_class.spec->pvc_names.empty() || !pod_class.spec->resource_claims.empty() ||
           !pod_class.spec->claim_templates.empty();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
