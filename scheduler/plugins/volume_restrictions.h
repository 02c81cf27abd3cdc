// VolumeRestrictions: what pods may not use at the same time.
//  - A disk that the pod names itself and that a pod on the node uses, unless both only read it; a
//    disk of AWS even then. Images of Ceph are one if pool and image are equal and the monitors
//    have one in common.
//  - A claim with access mode ReadWriteOncePod that another pod with a node uses.
//  - A claim that is decided for another node and not bound yet. Upstream says the same by its
//    VolumeBinding; here it is not the usage of one node.
// Depends on the cluster, but applies to few classes: those of pods with such disks, and of pods
// that have such a claim in common with others.
// Thread-safety: stateless. Complexity: O(disks of the node's pods + pods of the claims).
#pragma once

#include "scheduler/plugins/volume_plugin.h"

namespace fairlead::plugins {

class VolumeRestrictions final : public VolumePlugin {
 public:
  static constexpr char kName[] = "VolumeRestrictions";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kCluster;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    const model::VolumeNeeds& needs = *pod_class.spec->volume_needs;
    return !pod_class.spec->inline_disks.empty() || !needs.shared.empty() ||
           !FaultOf(needs, kName).empty();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
