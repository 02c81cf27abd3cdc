// NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes to nodes that declare it
// (model/node_features.h), with upstream's reason. A node that does not exist yet counts as having
// all of them: no catalogue says. Args: none. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeDeclaredFeatures final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodeDeclaredFeatures";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return pod_class.spec->required_features != 0;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
