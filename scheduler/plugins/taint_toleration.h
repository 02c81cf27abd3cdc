// TaintToleration. Filter: a taint NoSchedule or NoExecute that the pod does not tolerate refuses;
// the reason names the first one. Score: 100 without untolerated PreferNoSchedule taints, 100 / (1
// + n) with n of them, times kPreferenceStep. Upstream divides by the largest n of all nodes
// instead, which would make a node's score depend on other nodes. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class TaintToleration final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "TaintToleration";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
};

// The first taint that keeps the pod away from the node; null if none.
const model::Taint* FindUntolerated(const model::PodSpec& spec, const model::Node& node);

}  // namespace fairlead::plugins
