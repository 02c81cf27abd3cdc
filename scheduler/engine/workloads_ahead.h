// A walk over many workloads in the order of their ids: each is given to `use` a few workloads
// later, and its row and that of its first pod are asked for meanwhile. Most of such a walk is
// waiting for memory.
//
// Use: Add() each workload, then Finish(). Thread-safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "base/prefetch.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

// `use(id, row)`; the row may have gone, or be another workload's by then.
template <typename Use>
class WorkloadsAhead {
 public:
  WorkloadsAhead(const state::ClusterState& state, Use use) : state_(state), use_(std::move(use)) {}

  void Add(state::WorkloadId id) {
    const state::Workload& row = state_.workload(id);
    Prefetch(row);
    Entry& oldest = ring_[next_ % kAhead];
    const Entry due = std::exchange(oldest, {id, &row});
    ++next_;
    const Entry& half_way = ring_[(next_ + kAhead / 2) % kAhead];
    if (half_way.row != nullptr) {
      __builtin_prefetch(half_way.row->pods.data());
      __builtin_prefetch(half_way.row->uid.data());
    }
    const Entry& soon = ring_[(next_ + kAhead / 4) % kAhead];
    if (soon.row != nullptr && !soon.row->pods.empty()) {
      Prefetch(state_.pod(soon.row->pods.front()));
    }
    if (due.row != nullptr) use_(due.id, *due.row);
  }

  void Finish() {
    for (size_t i = 0; i < kAhead; ++i) {
      const Entry due = std::exchange(ring_[(next_ + i) % kAhead], {});
      if (due.row != nullptr) use_(due.id, *due.row);
    }
  }

 private:
  static constexpr size_t kAhead = 16;
  struct Entry {
    state::WorkloadId id = state::kNoId;
    const state::Workload* row = nullptr;
  };
  const state::ClusterState& state_;
  Use use_;
  std::array<Entry, kAhead> ring_ = {};
  size_t next_ = 0;
};

}  // namespace fairlead::engine
