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
};

struct Reclaimer {
  QueueId leaf = 0;
  model::Resources request;
  bool preemptible = true;
};

enum class ReclaimRefusal : uint8_t {
  kNone,                  // allowed
  kOverFairShare,         // the reclaimer's leaf would exceed its fair share
  kNonPreemptibleQuota,   // a queue of the reclaimer would exceed its quota
  kVictimWithinItsShare,  // no right to take from that side
  kMoreSaturated,         // the reclaimer's side would be as well served as who must give
};

// Why not, where not: for verdicts. `resource` has no meaning for kVictimWithinItsShare.
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
