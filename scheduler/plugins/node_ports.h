// NodePorts: a host port that the pod requests must not be taken by another pod of the node. Two
// ports collide if number and protocol are equal and the addresses are, or one of them is every
// address. Thread-safety: stateless. Complexity: O(pods of the node), for pods with host ports
// only.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodePorts final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodePorts";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->host_ports.empty();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
