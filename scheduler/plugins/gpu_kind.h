// GpuKind: does the node have the kind of GPU that the pod asks for, whatever runs on it?
//  - a share of a GPU (annotations gpu-fraction, gpu-memory) needs a node with as many GPUs as it
//    has devices; by memory also label nvidia.com/gpu.memory on it, and no more than one GPU has.
//    GPUs under MIG strategy "single" are slices of a GPU and are not shared.
//  - a pod that requests MIG instances needs a node with label node-role.kubernetes.io/mig-enabled,
//    or with MIG instances, and not strategy "single", under which they have no names.
//  - a pod that asks for MIG by annotation (KAI's legacy form) is not placed any more.
// Everything else passes. What is free is asked by NodeResourcesFit and GpuSharing.
// Source: KAI's rules (facts 3.7, 3.15). Thread-safety: stateless. No allocation without `why`.
#pragma once

#include <string>

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class GpuKind final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "GpuKind";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override;
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
};

// Does the pod request MIG instances?
bool RequestsMig(const model::PodSpec& spec);

}  // namespace fairlead::plugins
