// How long a workload may run before it may be made a victim, by the settings of the queues.
//
// A workload is protected while now < start + minimum runtime. Against preemption (inside its own
// queue) the first value found from its leaf upwards holds. Against reclaim (by another queue)
// there are two ways to look it up, as in KAI:
//   kLowestCommonAncestor  from the queue just below the lowest common ancestor, on the victim's
//                          side, upwards; the victim's top queue where the tops differ;
//   kQueue                 from the victim's leaf upwards.
// Where no queue says anything, the default of the scheduler holds.
// Thread-safety: pure functions. Complexity: O(depth).
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "queues/tree.h"

namespace fairlead::queues {

enum class ReclaimResolveMethod : uint8_t { kLowestCommonAncestor, kQueue };

absl::Duration PreemptMinRuntime(const QueueTree& tree, QueueId victim_leaf,
                                 absl::Duration default_runtime);
absl::Duration ReclaimMinRuntime(const QueueTree& tree, ReclaimResolveMethod method,
                                 QueueId reclaimer_leaf, QueueId victim_leaf,
                                 absl::Duration default_runtime);

// A workload that has not started is not protected: `start` is InfinitePast then.
inline bool IsProtected(absl::Time now, absl::Time start, absl::Duration min_runtime) {
  return now < start + min_runtime;
}

}  // namespace fairlead::queues
