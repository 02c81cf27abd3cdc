// Bounds of GPU models in one cycle. A pod that names no product is held to them once its node is
// chosen: the placement is checked afterwards, and tried again without the models that it breaks.
//
// Ownership: borrows its arguments. Thread-safety: the owner's thread. Complexity: nothing where no
// queue names a model; FindBroken() O(models * depth), Place() a placement for each broken model.
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

class ModelBounds {
 public:
  ModelBounds(const state::ClusterState& state, const queues::QueueTree& tree,
              const AllocationTracker& tracker);

  // Some queue names a model.
  [[nodiscard]] bool any() const { return !models_.empty(); }
  // The resource is that of a model that some queue names.
  [[nodiscard]] bool IsModel(model::ResourceIndex resource) const {
    return std::find(models_.begin(), models_.end(), resource) != models_.end();
  }

  // The first bound that the pods break where they are; they are placed and charged already.
  [[nodiscard]] std::optional<queues::LimitViolation> FindBroken(
      queues::QueueId leaf, bool preemptible, const std::vector<state::PodId>& pods) const;

  // Places the step within all bounds, into an empty transaction. `within` as Placer::Place().
  // `broken`: the bound that kept the step from a place, if it has none.
  Placement Place(Placer& placer, state::Transaction& txn, queues::QueueId leaf,
                  const state::Workload& workload, const TasksToAllocate& step, Placer::Mode mode,
                  NodeSetPtr within, std::optional<queues::LimitViolation>& broken) const;

  // The request, and the GPUs of pods that may run on any model counted for every model: which one
  // will be bought for them is not known.
  [[nodiscard]] model::Resources WithAnyModel(absl::Span<const state::PodId> pods,
                                              model::Resources request) const;

 private:
  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  const AllocationTracker& tracker_;
  const std::vector<model::ResourceIndex> models_;  // that some queue names
};

}  // namespace fairlead::engine
