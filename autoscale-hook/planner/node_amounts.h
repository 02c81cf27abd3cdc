// What fits on a node by its amounts alone: resources, number of pods, GPUs and shares of GPUs. It
// answers in nanoseconds what the scheduler's filters answer in microseconds, so the packer looks
// for fillings with it. Packer asks the scheduler before it relies on one.
//
// A dimension is a resource of the nodes, the number of pods, or one of four sizes of GPUs. Shares
// of GPUs fit if those of a device are one device at most, which no sum says; the four sizes are
// the sum and the sums of Fekete and Schepers' dual feasible functions of order 1 to 3 (2001): a
// share above a half takes a device, above a third half a device, and so on. They never refuse what
// fits.
//
// Units: those of the resources; GPUs in kDevice. Thread-safety: none. Ownership: values.
// Complexity: O(dimensions) per question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/planner/placement.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::hook {

class NodeAmounts {
 public:
  using Amounts = std::vector<int64_t>;
  static constexpr int64_t kDevice = 6000;  // orders 1 to 3 of thousandths are whole

  explicit NodeAmounts(const std::vector<model::Node>& nodes);

  // The next class: one pod, or pods that are counted as one. False: a resource that no node has is
  // requested, and nothing here knows of it.
  bool AddClass(const std::vector<Placement::Load>& pods);

  [[nodiscard]] size_t dimensions() const { return names_.size() + 5; }
  [[nodiscard]] const Amounts& capacity(int node) const {
    return capacity_[static_cast<size_t>(node)];
  }
  [[nodiscard]] const Amounts& request(int pod_class) const {
    return request_[static_cast<size_t>(pod_class)];
  }
  // Whether pods of the class request a share of a GPU.
  [[nodiscard]] bool RequestsShare(int pod_class) const {
    return share_milli_[static_cast<size_t>(pod_class)] > 0;
  }
  // Pods of the class on the node beside a load, (class, pods) ascending; at most `limit`. Shares
  // of GPUs are put onto devices one by one in the order of their classes, each onto the fullest
  // device that has room, as the scheduler does.
  [[nodiscard]] int64_t Count(int node, const std::vector<std::pair<int, int64_t>>& load,
                              int pod_class, int64_t limit) const;

 private:
  [[nodiscard]] Amounts RequestOf(const model::PodSpec& spec) const;
  struct Shares {
    int pod_class = 0;
    int64_t milli = 0, pods = 0;
  };
  static bool SharesFit(const std::vector<Shares>& shares, int64_t devices);
  [[nodiscard]] int64_t CountShares(int node, const std::vector<std::pair<int, int64_t>>& load,
                                    int pod_class, int64_t limit) const;

  std::vector<std::string> names_;
  std::vector<Amounts> capacity_, request_;
  std::vector<int64_t> share_milli_, whole_;  // by class: of one device, devices
};

// What decides whether a pod fits on a node, beside its amounts and the node's taints.
enum class FitsBy : uint8_t {
  kAmounts,  // nothing
  kLabels,   // the node's labels; no other pod
  kOther,    // anything: other pods, devices, volumes, ports
};
FitsBy WhatDecides(const model::PodSpec& spec);

}  // namespace fairlead::hook
