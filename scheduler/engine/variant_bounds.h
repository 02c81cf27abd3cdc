// Bounds of variants of resources (queues/variant.h: GPU models) in one cycle. A pod that names
// none is held to them once its node is chosen: the placement is checked afterwards, and tried
// again without the variants that it breaks.
//
// Ownership: borrows its arguments. Thread-safety: the owner's thread. Complexity: nothing where no
// queue names a variant; FindBroken() O(variants * depth), Place() a placement for each broken one.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "queues/limits.h"
#include "queues/tree.h"
#include "scheduler/engine/allocation_tracker.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/placer.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

class VariantBounds {
 public:
  VariantBounds(const state::ClusterState& state, const queues::QueueTree& tree,
                const AllocationTracker& tracker);

  // Some queue names a variant.
  [[nodiscard]] bool any() const { return !variants_.empty(); }
  // The resource is a variant that some queue names.
  [[nodiscard]] bool IsVariant(model::ResourceIndex resource) const {
    return std::find(variants_.begin(), variants_.end(), resource) != variants_.end();
  }

  // The first bound that the pods break where they are; they are placed and charged already.
  [[nodiscard]] std::optional<queues::LimitViolation> FindBroken(
      queues::QueueId leaf, bool preemptible, const std::vector<state::PodId>& pods) const;

  // Places the step within all bounds, into an empty transaction. `within` as Placer::Place().
  // `broken`: the bound that kept the step from a place, if it has none.
  Placement Place(Placer& placer, state::Transaction& txn, queues::QueueId leaf,
                  const state::Workload& workload, const TasksToAllocate& step, Placer::Mode mode,
                  NodeSetPtr within, std::optional<queues::LimitViolation>& broken) const;

  // The request, and what of it pods take that may run on any variant counted for every one: which
  // will be bought for them is not known.
  [[nodiscard]] model::Resources WithAnyVariant(absl::Span<const state::PodId> pods,
                                                model::Resources request) const;

 private:
  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  const AllocationTracker& tracker_;
  const std::vector<model::ResourceIndex> variants_;  // that some queue names
};

}  // namespace fairlead::engine
