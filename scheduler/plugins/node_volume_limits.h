// NodeVolumeLimits: a CSI driver attaches no more volumes to the node than its CSINode allows. The
// filter counts the volumes of pods on the node, each once, and the volumes that VolumeAttachments
// show there but that no such pod uses: these are not detached yet. What pods that terminate have
// attached may be waited for; evicting others would free nothing, as in upstream's preemption. A
// pod whose volumes are all attached already is not refused, even above the limit. On an empty node
// nothing is attached.
// Thread-safety: stateless. Complexity: O(volumes of the node's pods + its attachments), for pods
// with volumes of drivers that have a limit on the node.
#pragma once

#include "scheduler/plugins/volume_plugin.h"

namespace fairlead::plugins {

class NodeVolumeLimits final : public VolumePlugin {
 public:
  static constexpr char kName[] = "NodeVolumeLimits";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    const model::VolumeNeeds& needs = *pod_class.spec->volume_needs;
    return !needs.attached.empty() || !FaultOf(needs, kName).empty();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
