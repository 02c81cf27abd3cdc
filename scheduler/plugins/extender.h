// Extender: what scheduler extenders said about nodes for a pod (PodSpec::node_answers), as filter
// and score. Upstream asks its extenders after all filters and all scores
// (k8s.io/kubernetes/pkg/scheduler, findNodesThatPassExtenders, prioritizeNodes); here they are
// asked once a pod has been placed, and core::ExtenderPlugin has it placed again if they object.
//
// Filter: refuses the nodes that they refused. A node that they were not asked about is admitted if
// they admit any other one; if the pod goes there, they are asked again. Score: theirs, in points
// of upstream's scale.
//
// Thread-safety: stateless.
#pragma once

#include <cstdint>
#include <memory>

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class Extender final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "Extender";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  // The answers are part of the class.
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override;
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
};

}  // namespace fairlead::plugins
