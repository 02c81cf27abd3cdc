// May one queue take back resources that another one holds? KAI's rules (v0.17).
//
// Before a search (CanReclaim): with its request the reclaimer's leaf stays within its fair share
// in CPU, memory and GPU; a non-preemptible reclaimer also stays within the leaf's quota.
//
// For a set of victims (Reclaimable): queues compete where their paths diverge, just below the
// lowest common ancestor. Each piece of a victim (one extra pod, or a whole gang) is tested before
// it is taken off, against what its side still holds. One of two rights must hold:
//   maintain fair share        the victim's side holds more than its allocatable share of some
//                              resource;
//   guarantee deserved quota   the reclaimer's side stays within its quota in all resources, and
//                              the victim's side holds more than its quota of some resource.
// Then, at every queue from the reclaimer's leaf to its top, for each resource that the request or
// a victim involves: the reclaimer's side must not be over its fair share (saturation = allocated /
// fair share > 1) and, times the multiplier, at least as saturated as a sibling that gives up
// something and has a fair share at all. A non-preemptible reclaimer stays within the quota of
// every such queue. What is not involved does not block.
//
// Beyond KAI, off by default: rounding to the nearest gang (ReclaimContext::round_to_gang). By the
// rules above queues with gangs stop short of their shares, and what all of them lack may stay with
// one that had it before. With rounding, a queue of the reclaimer's path that holds less than its
// fair share of a resource may end above it, by less than the step g; instead of the saturation
// test at that queue, for that resource:
//   - every queue that gives, from the victim's leaf to where the paths diverge, holds more than
//     its fair share before its last piece;
//   - where the paths diverge, the givers end at their fair shares or above; or no more is taken
//     than g, and they come to lack less than the reclaimer's side gains.
// A queue above the leaf that has its fair share already is tested for saturation as ever; a leaf
// that has it may not reclaim. Rights, and quota for non-preemptible reclaimers, hold as without
// rounding. The multiplier has no say in it.
//
// Why that comes to rest: let the lack of siblings be the sum of what each is short of its fair
// share. Where a queue that is L > 0 short is rounded up and competes, its siblings and it lack
// less than before: by L, less what the givers come to lack. Where all gangs are of size g and the
// giver is O over, that is g < L + O: just when the sum of squared distances to the shares falls,
// from L^2 + O^2 to (g - L)^2 + (O - g)^2. What is placed in free room never adds to the lack.
// That holds level by level; that the levels together come to rest is tested (fairness_test.cc).
//
// Nothing here changes a ledger: pass the copy that was made when the search began, so that the
// simulation does not change the answer. Resources besides CPU, memory and GPU take part only where
// they are involved.
// Thread-safety: pure functions. Complexity: O(victim pieces * depth * resources).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "queues/fair_share.h"
#include "queues/ledger.h"
#include "queues/min_runtime.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

struct ReclaimContext {
  const QueueTree& tree;
  const QueueLedger& ledger;
  const FairShares& shares;
  int64_t saturation_multiplier_micro = kMicro;  // less than 1 counts as 1
  bool round_to_gang = false;                    // rounding, as above; KAI: false
};

struct Reclaimer {
  QueueId leaf = 0;
  model::Resources request;
  bool preemptible = true;
};

enum class ReclaimRefusal : uint8_t {
  kNone,                  // allowed
  kOverFairShare,         // the reclaimer's leaf would exceed its fair share (rounding: has it)
  kNonPreemptibleQuota,   // a queue of the reclaimer would exceed its quota
  kVictimWithinItsShare,  // no right to take from that side
  kMoreSaturated,         // the reclaimer's side would be as well served as who must give
};

// Why not, where not: for verdicts. `resource` has no meaning for kVictimWithinItsShare without
// rounding.
struct ReclaimAnswer {
  ReclaimRefusal refusal = ReclaimRefusal::kNone;
  QueueId queue = 0;
  model::ResourceIndex resource = 0;
  [[nodiscard]] bool allowed() const { return refusal == ReclaimRefusal::kNone; }
};

ReclaimAnswer CanReclaim(const ReclaimContext& context, const Reclaimer& reclaimer);

// The two rights, at the level where the paths diverge. `remaining`: what the victim's side holds
// after earlier pieces were taken off.
bool MaintainFairShare(const ReclaimContext& context, QueueId victim_side,
                       const model::Resources& remaining);
bool GuaranteeDeservedQuota(const ReclaimContext& context, const Reclaimer& reclaimer,
                            QueueId reclaimer_side, QueueId victim_side,
                            const model::Resources& remaining);

// Could any right ever hold against this leaf? False: none of its workloads need be considered.
bool MayEverReclaimFrom(const ReclaimContext& context, const Reclaimer& reclaimer,
                        QueueId victim_leaf);

struct VictimQueue {
  QueueId leaf = 0;
  std::vector<model::Resources> pieces;  // in the order in which they are taken
};
ReclaimAnswer Reclaimable(const ReclaimContext& context, const Reclaimer& reclaimer,
                          absl::Span<const VictimQueue> victims);

}  // namespace fairlead::queues
