// DriverVersion: a pod may say how new the GPU driver of its node has to be.
//   filter  refuses nodes with an older driver, and nodes that do not say what they have
//   score   prefers the oldest driver that will do, so that newer ones stay free: 100 less the
//           difference between the versions, at least 0
// A pod without the label goes anywhere.
//
// Args: {"podLabel": "example.com/min-driver",
//        "nodeLabel": "nvidia.com/cuda.driver-version.major"}, these by default.
// Thread-safety: immutable. No allocation without `why`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/framework/framework.h"

namespace example {

class DriverVersion final : public fairlead::framework::FilterPlugin,
                            public fairlead::framework::ScorePlugin {
 public:
  static constexpr char kName[] = "DriverVersion";
  static absl::StatusOr<std::unique_ptr<fairlead::framework::Plugin>> Make(
      absl::string_view args_json);
  DriverVersion(std::string pod_label, std::string node_label);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] fairlead::framework::Depends DependsOn() const override {
    return fairlead::framework::Depends::kNodeObject;
  }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return {pod_label_}; }

  [[nodiscard]] bool FilterApplies(const fairlead::state::PodClass& pod_class) const override;
  [[nodiscard]] std::string RefusesEverywhere(
      const fairlead::state::PodClass& pod_class) const override;
  bool Filter(const fairlead::framework::Context& context, const fairlead::state::NodeInfo& node,
              fairlead::framework::Status* why) const override;

  [[nodiscard]] bool ScoreApplies(const fairlead::state::PodClass& pod_class) const override;
  [[nodiscard]] int64_t Score(const fairlead::framework::Context& context,
                              const fairlead::state::NodeInfo& node) const override;

 private:
  std::string pod_label_, node_label_;
};

}  // namespace example
