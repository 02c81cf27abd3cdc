// VolumeBinding: the pod's volumes can be used on the node. A bound volume says by its node
// affinity, which reads labels alone, where it can be used. A claim that waits for its first
// consumer needs a volume that matches it, or a provisioner that can make one for the node and has
// room (state::Volumes::Choose). A claim that is decided for this node already asks for nothing.
// Args: bindTimeoutSeconds (600): how long a pod waits for its volumes once it has a node.
// Thread-safety: stateless. Complexity: that of Choose.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/plugins/volume_plugin.h"

namespace fairlead::plugins {

class VolumeBinding final : public VolumePlugin, public framework::PreparingPlugin {
 public:
  static constexpr char kName[] = "VolumeBinding";
  static constexpr absl::Duration kDefaultBindTimeout = absl::Seconds(600);
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  explicit VolumeBinding(absl::Duration bind_timeout) : bind_timeout_(bind_timeout) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] absl::Duration bind_timeout() const { return bind_timeout_; }

 private:
  absl::Duration bind_timeout_;
};

// The longest bind timeout that a profile gives VolumeBinding; the default if all leave it out.
// InvalidArgument for args that Make() refuses.
absl::StatusOr<absl::Duration> BindTimeoutOf(const std::vector<framework::Profile>& profiles);

}  // namespace fairlead::plugins
