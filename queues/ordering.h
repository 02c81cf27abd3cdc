// Which of two sibling queues is served first: KAI's eight rules, as a pure comparison.
//
//  1. A queue that is not over its fair share, before one that is. Over: allocated > fair share in
//     all of CPU, memory and GPU.
//  2. A queue that stays within its quota in all three with its next job, before one that does not.
//  3. Higher queue priority.
//  4. A queue that would, with its next job, use a resource of which its allocatable share is zero,
//     goes last.
//  5. Smaller dominant share with the next job: the largest allocated / allocatable share over the
//     three; where the share is zero, allocated * 1000 (in devices, milli-CPU, bytes).
//  6. Smaller dominant share without the next job.
//  7. Smaller allocatable share, GPU before CPU before memory. (KAI compares the three at once and
//     may find neither smaller; a lexicographic comparison agrees wherever KAI's decides, and keeps
//     the whole order transitive.)
//  8. Older, then by name.
// An unlimited share counts as the whole cluster in 5 and 6, and as the largest in 7. Only CPU,
// memory and GPU take part, as in KAI; other resources have limits but no order.
//
// A search for victims reverses the order, and subtracts what was already picked from a queue from
// its allocation in rules 4, 5 and 6.
//
// The result is a strict weak order (a total one, as names differ). Ratios are compared by cross
// multiplication. Thread-safety: pure functions. Complexity: constant.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "queues/exact.h"
#include "queues/fair_share.h"
#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

// CPU, memory, GPU: indexed by kCpu, kMemory, kGpu. Base units.
using CoreAmounts = std::array<int64_t, model::kGpu + 1>;
CoreAmounts ToCore(const model::Resources& resources);

// The input of the comparison for one queue. `name` must outlive it.
struct QueueView {
  CoreAmounts allocated = {};
  CoreAmounts fair_share = {};
  CoreAmounts quota = {};              // kUnlimited: no bound
  CoreAmounts allocatable_share = {};  // kUnlimited: no bound
  CoreAmounts next_job = {};           // zeros if there is none
  CoreAmounts picked_victims = {};     // zeros except in a search for victims
  int32_t priority = 0;
  absl::Time creation = absl::InfinitePast();
  absl::string_view name;
};

// `next_job` may be null.
QueueView MakeView(const QueueTree& tree, const QueueLedger& ledger, const FairShares& shares,
                   QueueId queue, const model::Resources* next_job);

// A view prepared for comparison; use it if one queue is compared often.
struct QueueRank {
  bool over_fair_share = false;
  bool within_quota = false;
  bool uses_zero_share = false;
  int32_t priority = 0;
  Ratio share_with_job, share_without_job;
  std::array<uint64_t, model::kGpu + 1> allocatable = {};  // GPU, CPU, memory
  absl::Time creation;
  absl::string_view name;
};
QueueRank MakeRank(const QueueView& view, const CoreAmounts& cluster_total);

// Negative: a is served before b. Zero only for equal names and creation times.
int CompareQueues(const QueueRank& a, const QueueRank& b);
int CompareQueues(const QueueView& a, const QueueView& b, const CoreAmounts& cluster_total);
// Negative: victims of a come before those of b.
inline int CompareVictimQueues(const QueueRank& a, const QueueRank& b) {
  return CompareQueues(b, a);
}

}  // namespace fairlead::queues
