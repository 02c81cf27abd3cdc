// Upstream's extension points of the scheduling cycle besides filters and scores
// (k8s.io/kube-scheduler/framework): QueueSort and PostFilter.
//
// Thread-safety: called on the thread that owns the state. Determinism: an answer follows from the
// arguments alone.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/framework/framework.h"

namespace fairlead::framework {

// Which of the workloads that wait in one queue comes first. Which queue comes first is decided by
// shares.
class QueueSortPlugin : public virtual Plugin {
 public:
  // The lesser key comes first, whatever the priorities; of equal ones priority, elastic state and
  // age decide, as with PrioritySort. Upstream compares two pods; a key cannot contradict itself.
  // Asked when an object of the workload, or one of its pods, changes.
  [[nodiscard]] virtual int64_t SortKey(const state::ClusterState& state,
                                        const state::Workload& workload) const = 0;
};

// What could be evicted for a pod that fits no node.
class PostFilterPlugin : public virtual Plugin {
 public:
  struct Proposal {  // rows of the state
    state::NodeId node = state::kNoId;
    std::vector<state::PodId> victims;
  };
  // In the order of preference. A proposal is carried out if the engine finds that the pod fits the
  // node without the victims, and that they may be evicted: they are preemptible pods of the pod's
  // own queue, of any priority, that run, that no other decision concerns, whose minimum runtime is
  // over, and whose budgets allow it. A pod at the minimum of its gang takes the gang along. Asked
  // about lone pods and pods that start one by one, when neither room nor reclaim has helped.
  [[nodiscard]] virtual std::vector<Proposal> PostFilter(const Context& context,
                                                         const state::PodRecord& pod) const = 0;
};

}  // namespace fairlead::framework
