// Whether a queue may take more, and how much: limits and the quota for non-preemptible work, at
// the queue and at every queue above it (KAI's rules).
//
//   limit:  allocated + request <= limit
//   quota:  allocated_non_preemptible + request <= quota, for a non-preemptible workload
//
// A resource with a request of zero is not compared. So a queue that is already over its limit (the
// limit was lowered) can still take what does not need that resource. -1 is no bound.
// Thread-safety: pure functions. Complexity: O(depth * resources).
#pragma once

#include <cstdint>
#include <optional>

#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

enum class LimitKind : uint8_t { kLimit, kNonPreemptibleQuota };

struct LimitViolation {
  QueueId queue = 0;
  model::ResourceIndex resource = 0;
  LimitKind kind = LimitKind::kLimit;
  int64_t limit = 0;  // the limit, or the quota
  int64_t used = 0;   // allocated, or allocated_non_preemptible
  int64_t requested = 0;
  friend bool operator==(const LimitViolation&, const LimitViolation&) = default;
};

// The first bound that the request would break, or none. Limits come before quotas; then a queue
// before the queues above it; then GPU, CPU, memory, other resources.
std::optional<LimitViolation> CheckLimits(const QueueTree& tree, const QueueLedger& ledger,
                                          QueueId leaf, const model::Resources& request,
                                          bool preemptible);

// The most of each resource that CheckLimits would allow a request of this leaf: >= 0, or
// kUnlimited. Has an explicit entry for every name in the tree's ResourceNames.
model::Resources Headroom(const QueueTree& tree, const QueueLedger& ledger, QueueId leaf,
                          bool preemptible);

}  // namespace fairlead::queues
