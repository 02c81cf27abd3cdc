// What several plugins share.
// Thread-safety: pure functions; ClassCache locks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/resources.h"

namespace fairlead::plugins {

// Fills `why` where it is asked for; the answer of a filter that refuses.
inline bool Refuse(framework::Status* why, framework::Code code, absl::string_view reason) {
  if (why != nullptr) {
    why->code = code;
    why->reason.assign(reason.data(), reason.size());
  }
  return false;
}

// What is free of one resource; below zero on an overcommitted node. No allocation, unlike
// NodeInfo::Available() and Future(), which it agrees with.
inline int64_t FreeAmount(const state::NodeInfo& node, framework::Room room,
                          model::ResourceIndex resource) {
  const int64_t allocatable = node.allocatable[resource];
  if (room == framework::Room::kEmpty) return allocatable;
  int64_t free = model::SaturatingAdd(allocatable, -node.used[resource]);
  if (room == framework::Room::kFuture) free = model::SaturatingAdd(free, node.releasing[resource]);
  return model::SaturatingAdd(free, -node.pipelined[resource]);
}

// Whether a pod is in the way on its node: what is terminating is not where the pod may wait for
// it, and nothing is on an empty node.
inline bool InTheWay(const state::PodRecord& pod, framework::Room room) {
  switch (room) {
    case framework::Room::kNow:
      return state::HoldsNode(pod.status) || pod.status == state::PodStatus::kPipelined;
    case framework::Room::kFuture:
      return state::IsAllocated(pod.status);
    case framework::Room::kEmpty:
      return false;
  }
  return false;
}

// Is the node one that pods run on now, or will be once it is ready (asked for with another room)?
inline bool IsPlace(const state::NodeInfo& node, framework::Room room) {
  if (!node.exists) return false;
  if (room != framework::Room::kNow) return true;
  return node.kind != state::NodeKind::kOrdered && node.usable;
}

// Remembers what a plugin has computed over the whole cluster for a class, until the state changes.
template <typename T>
class ClassCache {
 public:
  template <typename Compute>
  std::shared_ptr<const T> Get(const framework::Context& context, Compute compute) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != &context.state || version_ != context.state.version()) {
      entries_.clear();
      state_ = &context.state;
      version_ = context.state.version();
    }
    Entry& entry = entries_[{context.pod_class.spec.get(), context.room}];
    if (entry.value == nullptr) {
      entry.value = std::make_shared<const T>(compute());
      entry.spec = context.pod_class.spec;
    }
    return entry.value;
  }

 private:
  struct Entry {
    std::shared_ptr<const model::PodSpec> spec;  // kept alive: its address is the key
    std::shared_ptr<const T> value;
  };
  std::mutex mutex_;
  const state::ClusterState* state_ = nullptr;
  uint64_t version_ = 0;
  absl::flat_hash_map<std::pair<const model::PodSpec*, framework::Room>, Entry> entries_;
};

}  // namespace fairlead::plugins
