// NodePlacement: KAI's placement strategy. It looks at the main resource of the pod: the GPUs that
// it asks for, otherwise CPU.
//   binpack  the fuller node first: kPlacementRange - free amount in base units
//   spread   the emptier node first: free share of allocatable, scaled to kPlacementRange
// Range 0..kPlacementRange. KAI scales free amounts by the least and the most of all candidates;
// the order among them is the same, and ours needs no other node. "Free" is
// what is idle or being released, whatever the capacity asked about (KAI's non-allocated).
//
// Args: {"gpu": "binpack" | "spread", "cpu": "binpack" | "spread"}, both binpack by default.
// Thread-safety: immutable. No allocation.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodePlacement final : public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "NodePlacement";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  NodePlacement(bool spread_gpu, bool spread_cpu)
      : spread_gpu_(spread_gpu), spread_cpu_(spread_cpu) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
  [[nodiscard]] int64_t Step() const override { return 1; }

 private:
  bool spread_gpu_, spread_cpu_;
};

}  // namespace fairlead::plugins
