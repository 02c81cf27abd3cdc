#include "queues/min_runtime.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace fairlead::queues {
namespace {

absl::Duration FirstUpwards(const QueueTree& tree, QueueId from,
                            std::optional<absl::Duration> model::Queue::* field,
                            absl::Duration default_runtime) {
  for (const QueueId queue : tree.Ancestors(from)) {
    if (const std::optional<absl::Duration>& value = tree.Spec(queue).*field) return *value;
  }
  return default_runtime;
}

}  // namespace

absl::StatusOr<ReclaimResolveMethod> ParseReclaimResolveMethod(absl::string_view text) {
  if (text == "lca") return ReclaimResolveMethod::kLowestCommonAncestor;
  if (text == "queue") return ReclaimResolveMethod::kQueue;
  return absl::InvalidArgumentError(
      absl::StrCat("reclaimResolveMethod '", text, "' is not lca or queue"));
}

absl::Duration PreemptMinRuntime(const QueueTree& tree, QueueId victim_leaf,
                                 absl::Duration default_runtime) {
  return FirstUpwards(tree, victim_leaf, &model::Queue::preempt_min_runtime, default_runtime);
}

absl::Duration ReclaimMinRuntime(const QueueTree& tree, ReclaimResolveMethod method,
                                 QueueId reclaimer_leaf, QueueId victim_leaf,
                                 absl::Duration default_runtime) {
  const QueueId from = method == ReclaimResolveMethod::kQueue
                           ? victim_leaf
                           : tree.Diverging(reclaimer_leaf, victim_leaf).second;
  return FirstUpwards(tree, from, &model::Queue::reclaim_min_runtime, default_runtime);
}

}  // namespace fairlead::queues
