// VolumeZone: a bound volume whose labels name zones or regions can be used only on a node whose
// labels name one of them. A node without any label of zones or regions can use every volume; beta
// labels of a volume are compared with the node's stable ones if it has no beta ones.
// Thread-safety: stateless. Complexity: O(labels of the pod's volumes).
#pragma once

#include "scheduler/plugins/volume_plugin.h"

namespace fairlead::plugins {

class VolumeZone final : public VolumePlugin {
 public:
  static constexpr char kName[] = "VolumeZone";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
