// The pods that a cluster usually runs, as shapes with weights: what a fragmentation-aware score
// asks about free capacity. Given by configuration or learned from the pods of the state.
//
// Units: milli-CPU, bytes, milli-GPU of one device; weights are parts of kTypicalWeight.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/plugins/pod_census.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::plugins {

// All shapes of a list weigh so much together, rounding aside.
inline constexpr int64_t kTypicalWeight = 1'000'000;
// More shapes than this are not looked at.
inline constexpr size_t kMaxTypical = 64;

struct TypicalPod {
  int64_t cpu = 0, memory = 0;
  int64_t devices = 0;       // GPUs; a shape without any is not kept
  int64_t milli = 1000;      // of each device
  model::PodSpec placement;  // only its node selector and required terms count
  int64_t weight = 0;
  [[nodiscard]] bool SameShape(const TypicalPod& o) const {
    return cpu == o.cpu && memory == o.memory && devices == o.devices && milli == o.milli &&
           placement == o.placement;
  }
};

// Reads the list `typicalPods` of `args_json`: objects with count (1), cpu, memory (quantities, 0),
// gpu (devices, 1), gpuFractionMilli (1..999 of each device; absent: whole GPUs) and gpuProducts
// (values of label nvidia.com/gpu.product that it accepts; absent: any). Empty if there is no list.
// InvalidArgument names the element and the field.
absl::StatusOr<std::vector<TypicalPod>> ReadTypicalPods(absl::string_view plugin,
                                                        absl::string_view args_json);

// The shapes of all our pods that wait or run, by how many there are of each: the commonest that
// make up 95 % of them, at most kMaxTypical. Memory is left out: it seldom decides, and tells apart
// what is alike otherwise. Equal counts: the class with the smaller id first. `counts`: of that
// state. O(classes x shapes).
std::vector<TypicalPod> LearnTypicalPods(const state::ClusterState& state, const PodCounts& counts);

// The commonest shapes that make up 95 % of the counts in `weight` (CPU-only ones counted, then
// dropped; more if these have no GPUs), with weights as above. Equal counts: the earlier one first.
std::vector<TypicalPod> Commonest(std::vector<TypicalPod> shapes);

// The same shapes, each weight divided by the number of devices and by the square of the share of
// one device; the sum as above. Capacity that a large pod cannot use is seldom lost, because
// smaller ones use it. What a small share leaves of a device is lost. With counts alone the large
// shapes would decide.
std::vector<TypicalPod> WeighBySize(std::vector<TypicalPod> shapes);

}  // namespace fairlead::plugins
