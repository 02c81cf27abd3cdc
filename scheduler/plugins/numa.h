// Numa: pods that the kubelet's Topology Manager would refuse stay off the node, and those that it
// would spread over NUMA nodes go where it spreads them least (KAI's plugin `numa`). Off by
// default, as in KAI: it needs NodeResourceTopology objects, which an exporter on the machines
// writes.
//  Filter: with policy single-numa-node or restricted, the pod can be aligned beside the pods whose
//    NUMA nodes are known (rules in scheduler/state/numa_zones.h).
//  Score: the fewer NUMA nodes the pod would have, the better: kNumaStep for each below kMostSpan.
//    On a machine without a policy the pod is assumed to have all of them; on one without a
//    topology as many as the machine that has most.
// Args: none. Thread-safety: stateless. Complexity: as FitsZones() and PickZones().
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class Numa final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "Numa";
  // More NUMA nodes than this count as this.
  static constexpr int64_t kMostSpan = 4;
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeUsage;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return pod_class.aligned != nullptr;
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return pod_class.aligned != nullptr;
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
  [[nodiscard]] int64_t Step() const override { return framework::kNumaStep; }
};

}  // namespace fairlead::plugins
