// NodeUnschedulable: cordoned nodes take no pod. KAI refuses always, and so do we by default; with
// args {"honorToleration": true} a pod that tolerates node.kubernetes.io/unschedulable:NoSchedule
// may go there, as upstream has it. Thread-safety: immutable.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeUnschedulable final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodeUnschedulable";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  explicit NodeUnschedulable(bool honor_toleration) : honor_toleration_(honor_toleration) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;

 private:
  bool honor_toleration_;
};

}  // namespace fairlead::plugins
