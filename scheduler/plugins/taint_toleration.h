// TaintToleration. Filter: a taint NoSchedule or NoExecute that the pod does not tolerate refuses;
// the reason names the first one. Score: 100 - 100 n / most, with n untolerated PreferNoSchedule
// taints on the node and `most` on the node that has most. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class TaintToleration final : public framework::FilterPlugin,
                              public framework::NormalizedScorePlugin {
 public:
  static constexpr char kName[] = "TaintToleration";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoresVary(const framework::Context& context) const override {
    return context.state.softly_tainted_nodes() > 0;
  }
  void AddMarks(const framework::Context& context, const state::NodeInfo& node,
                const framework::TopologyKeys& by_node, framework::Marks& marks) const override;
  void ScoreKinds(const framework::Context& context, absl::Span<const framework::Kind> kinds,
                  absl::Span<int64_t> scores) const override;
};

// The first taint that keeps the pod away from the node; null if none.
const model::Taint* FindUntolerated(const model::PodSpec& spec, const model::Node& node);

}  // namespace fairlead::plugins
