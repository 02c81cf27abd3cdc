// NodeReady: only nodes that are there, ready and without pressure take pods. Upstream does this
// with taints that its node controller sets a moment later; KAI reads the conditions, and so do we.
//
// A node that is ordered, or registered and not usable yet, refuses Capacity::kNow only: pods are
// promised to it. Counted as depending on usage because the answer changes with the capacity asked
// about. Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeReady final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodeReady";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

}  // namespace fairlead::plugins
