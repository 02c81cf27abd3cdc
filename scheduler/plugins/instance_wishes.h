// InstanceWishes. Filter: the node is a machine as the annotations of the pod ask for (families of
// instance types, a regular expression over the type, GPU models, spot or on-demand, GPUs of the
// node; model/instance_wishes.h). It holds for every node, so that the scale hook provisions what
// the scheduler then uses. The price is the hook's business: a node does not tell it.
//
// GPUs of a node are those that it can allocate, of every vendor. Thread-safety: stateless.
// Complexity: nothing for pods without wishes; else the length of the node's labels and lists.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class InstanceWishes final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "InstanceWishes";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return pod_class.spec->wishes->Any();
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
