// How long a workload may run before it may become a victim, by the settings of the queues.
//
// A workload is protected while now < start + minimum runtime. Against preemption (inside its own
// queue) the first value from its leaf upwards applies. Against reclaim (by another queue) there
// are two methods, as in KAI:
//   kLowestCommonAncestor  from the queue just below the lowest common ancestor, on the victim's
//                          side, upwards; the victim's top queue if the tops differ;
//   kQueue                 from the victim's leaf upwards.
// If no queue sets a value, the scheduler's default applies. Thread-safety: pure functions.
// Complexity: O(depth).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "queues/tree.h"

namespace fairlead::queues {

enum class ReclaimResolveMethod : uint8_t { kLowestCommonAncestor, kQueue };
// "lca" or "queue", KAI's words; InvalidArgument otherwise.
absl::StatusOr<ReclaimResolveMethod> ParseReclaimResolveMethod(absl::string_view text);

// KAI's arguments of the same names, with its defaults.
struct MinRuntimeOptions {
  absl::Duration default_preempt = absl::ZeroDuration();  // defaultPreemptMinRuntime
  absl::Duration default_reclaim = absl::ZeroDuration();  // defaultReclaimMinRuntime
  ReclaimResolveMethod reclaim_resolve_method = ReclaimResolveMethod::kLowestCommonAncestor;
};

absl::Duration PreemptMinRuntime(const QueueTree& tree, QueueId victim_leaf,
                                 absl::Duration default_runtime);
absl::Duration ReclaimMinRuntime(const QueueTree& tree, ReclaimResolveMethod method,
                                 QueueId reclaimer_leaf, QueueId victim_leaf,
                                 absl::Duration default_runtime);

inline absl::Duration PreemptMinRuntime(const QueueTree& tree, const MinRuntimeOptions& options,
                                        QueueId victim_leaf) {
  return PreemptMinRuntime(tree, victim_leaf, options.default_preempt);
}
inline absl::Duration ReclaimMinRuntime(const QueueTree& tree, const MinRuntimeOptions& options,
                                        QueueId reclaimer_leaf, QueueId victim_leaf) {
  return ReclaimMinRuntime(tree, options.reclaim_resolve_method, reclaimer_leaf, victim_leaf,
                           options.default_reclaim);
}

// A workload that has not started (`start` is InfinitePast) is not protected.
inline bool IsProtected(absl::Time now, absl::Time start, absl::Duration min_runtime) {
  return now < start + min_runtime;
}

}  // namespace fairlead::queues
