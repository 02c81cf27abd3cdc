#include "queues/limits.h"

#include <algorithm>

namespace fairlead::queues {
namespace {

using model::kUnlimited;
using model::ResourceIndex;

// The bound of one kind on one resource of one queue, and what counts against it.
struct Bound {
  int64_t limit;
  int64_t used;
};

int64_t LimitOn(const QueueTree& tree, QueueId queue, ResourceIndex r, LimitKind kind) {
  const Bounds& bounds = tree.BoundsOf(queue, r);
  return kind == LimitKind::kLimit ? bounds.limit : bounds.quota;
}

Bound BoundOn(const QueueTree& tree, const QueueLedger& ledger, QueueId queue, ResourceIndex r,
              LimitKind kind) {
  return {LimitOn(tree, queue, r, kind), kind == LimitKind::kLimit
                                             ? ledger.allocated(queue, r)
                                             : ledger.allocated_non_preemptible(queue, r)};
}

// The resources that are asked for, in the order in which they are reported: GPU first, because
// users ask about it first.
absl::InlinedVector<ResourceIndex, 8> AskedResources(const QueueTree& tree,
                                                     const model::Resources& request) {
  absl::InlinedVector<ResourceIndex, 8> asked;
  const auto add = [&](ResourceIndex r) {
    if (request[r] > 0) asked.push_back(r);
  };
  for (const ResourceIndex r : {model::kGpu, model::kCpu, model::kMemory}) add(r);
  for (const ResourceIndex r : tree.resources()) {
    if (r > model::kGpu) add(r);
  }
  return asked;
}

}  // namespace

std::optional<LimitViolation> CheckLimits(const QueueTree& tree, const QueueLedger& ledger,
                                          QueueId leaf, const model::Resources& request,
                                          bool preemptible) {
  const auto resources = AskedResources(tree, request);
  const QueuePath path = tree.Ancestors(leaf);
  for (const LimitKind kind : {LimitKind::kLimit, LimitKind::kNonPreemptibleQuota}) {
    if (kind == LimitKind::kNonPreemptibleQuota && preemptible) continue;
    for (const QueueId queue : path) {
      for (const ResourceIndex r : resources) {
        if (LimitOn(tree, queue, r, kind) == kUnlimited) continue;
        const Bound bound = BoundOn(tree, ledger, queue, r, kind);
        if (bound.used > bound.limit || request[r] > bound.limit - bound.used) {
          return LimitViolation{queue, r, kind, bound.limit, bound.used, request[r]};
        }
      }
    }
  }
  return std::nullopt;
}

model::Resources Headroom(const QueueTree& tree, const QueueLedger& ledger, QueueId leaf,
                          bool preemptible) {
  model::Resources headroom;
  for (size_t i = 0; i < tree.names().size(); ++i) {
    headroom.Set(static_cast<ResourceIndex>(i), kUnlimited);
  }
  for (const QueueId queue : tree.Ancestors(leaf)) {
    for (const ResourceIndex r : tree.resources()) {
      for (const LimitKind kind : {LimitKind::kLimit, LimitKind::kNonPreemptibleQuota}) {
        if (kind == LimitKind::kNonPreemptibleQuota && preemptible) continue;
        const Bound bound = BoundOn(tree, ledger, queue, r, kind);
        if (bound.limit == kUnlimited) continue;
        const int64_t left = bound.used >= bound.limit ? 0 : bound.limit - bound.used;
        if (headroom[r] == kUnlimited || left < headroom[r]) headroom.Set(r, left);
      }
    }
  }
  return headroom;
}

}  // namespace fairlead::queues
