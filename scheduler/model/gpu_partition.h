// How the device plugin of a NodePool's nodes divides GPUs (spec.gpuSharing): what a node brings is
// not the GPUs that it has.
//
// Sources: NVIDIA's k8s-device-plugin and gpu-feature-discovery, their pages on sharing and MIG.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::model {

struct GpuPartition {
  enum class Strategy : uint8_t {
    kNone,         // nvidia.com/gpu is whole GPUs
    kTimeSlicing,  // each GPU counts `replicas` times
    kMps,          // likewise
    kMigSingle,    // each instance counts as a GPU; all GPUs are divided alike
    kMigMixed,     // each instance counts as nvidia.com/mig-PROFILE
  };
  Strategy strategy = Strategy::kNone;
  int64_t replicas = 1;
  // kTimeSlicing and kMps: the resource is nvidia.com/gpu.shared, and the product keeps its name.
  bool renamed = false;
  // MIG: profiles ("1g.5gb") with their instances on each GPU, by profile.
  std::vector<std::pair<std::string, int64_t>> instances;

  [[nodiscard]] bool SharesTime() const {
    return strategy == Strategy::kTimeSlicing || strategy == Strategy::kMps;
  }
  // How often nvidia.com/gpu counts one GPU; 0: not at all.
  [[nodiscard]] int64_t CountOfEach() const {
    if (SharesTime()) return renamed ? 0 : replicas;
    if (strategy == Strategy::kNone) return 1;
    return strategy == Strategy::kMigSingle && !instances.empty() ? instances.front().second : 0;
  }
  friend bool operator==(const GpuPartition&, const GpuPartition&) = default;
};

}  // namespace fairlead::model
