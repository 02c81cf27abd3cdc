// What several plugins share.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/resources.h"

namespace fairlead::plugins {

// Fills `why` if it is asked for; the answer of a filter that refuses.
inline bool Refuse(framework::Status* why, framework::Code code, absl::string_view reason) {
  if (why != nullptr) {
    why->code = code;
    why->reason.assign(reason.data(), reason.size());
  }
  return false;
}

// What is free of one resource; below zero on an overcommitted node. No allocation, unlike
// NodeInfo::Available() and Future(), which it agrees with.
inline int64_t FreeAmount(const state::NodeInfo& node, framework::Capacity capacity,
                          model::ResourceIndex resource) {
  const int64_t allocatable = node.allocatable[resource];
  if (capacity == framework::Capacity::kEmpty) return allocatable;
  int64_t free = model::SaturatingAdd(allocatable, -node.used[resource]);
  if (capacity == framework::Capacity::kFuture)
    free = model::SaturatingAdd(free, node.releasing[resource]);
  return model::SaturatingAdd(free, -node.pipelined[resource]);
}

// Whether a pod is in the way on its node: what is terminating is not where the pod may wait for
// it, and nothing is on an empty node.
inline bool InTheWay(const state::PodRecord& pod, framework::Capacity capacity) {
  switch (capacity) {
    case framework::Capacity::kNow:
      return state::HoldsNode(pod.status) || pod.status == state::PodStatus::kPipelined;
    case framework::Capacity::kFuture:
      return state::IsAllocated(pod.status);
    case framework::Capacity::kEmpty:
      return false;
  }
  return false;
}

using framework::IsPlace;

// Is it among these keys? No list: every key is.
inline bool Has(const framework::TopologyKeys* keys, const framework::TopologyKey& key) {
  return keys == nullptr || std::find(keys->begin(), keys->end(), &key) != keys->end();
}

}  // namespace fairlead::plugins
