// Whether a queue may reclaim resources that another one holds. KAI's rules (v0.17), but for one
// condition.
//
// Before a search (CanReclaim): with its request the reclaimer's leaf stays within its fair share
// in CPU, memory and GPU; a non-preemptible reclaimer also stays within the leaf's quota.
//
// For a set of victims (Reclaimable): queues compete where their paths diverge, just below the
// lowest common ancestor. Each piece of a victim (one extra pod, or a whole gang) is tested, before
// it is subtracted, against what its side still holds. One of two rights must hold:
//   maintain fair share        the victim's side holds more than its allocatable share of some
//                              resource that the request or the piece has some of;
//   guarantee deserved quota   the reclaimer's side stays within its quota in all resources, and
//                              the victim's side holds more than its quota of some resource that
//                              the request has some of.
// KAI takes any resource for both. There two queues evict each other's pods without end:
//   - Each is above its share of GPUs at times. Pods without GPUs are evicted for pods without
//   GPUs,
//     and neither queue gets nearer to its share.
//   - Queue a is within its quota of GPUs, queue b above its quota and within its share. A pod of a
//     without GPUs evicts a GPU pod of b, and idle GPUs bring a above its share for a while. Then b
//     evicts the pod without GPUs by the first right.
// Then there is a test at every queue from the reclaimer's leaf to its top, for each resource that
// the request or a victim involves. The test fails if both hold: the reclaimer's side is over its
// fair share (saturation = allocated / fair share > 1), and its saturation times the multiplier is
// at least that of a sibling that gives up something and has a fair share. A non-preemptible
// reclaimer stays within the quota of every such queue. Resources that are not involved do not
// block.
//
// Not in KAI, off by default: rounding to the nearest gang (ReclaimContext::round_to_gang). By the
// rules above queues with gangs stop short of their shares, and the sum of their shortages may stay
// with one queue that had it before. With rounding, a queue of the reclaimer's path that holds less
// than its fair share of a resource may end above it, by less than the step g. At that queue, for
// that resource, two tests replace the saturation test:
//   - every queue that gives, from the victim's leaf to where the paths diverge, holds more than
//     its fair share before its last piece;
//   - where the paths diverge, the givers end at their fair shares or above; or at most g is taken,
//     and the givers' shortage grows by less than the reclaimer's side gains.
// A queue above the leaf that has its fair share already is tested for saturation as usual; a leaf
// that has it may not reclaim. Rights, and quota for non-preemptible reclaimers, hold as without
// rounding. The multiplier is not used.
//
// Why rounding terminates: let the lack of siblings be the sum of their shortages. If a queue with
// a shortage L > 0 is rounded up and competes, the total lack shrinks by L, less the growth of the
// givers' shortage. If all gangs have size g and the giver is O over, the condition is g < L + O.
// That is exactly when the sum of squared distances to the shares falls:
//   (g - L)^2 + (O - g)^2 < L^2 + O^2
// Placing pods on free capacity never adds to the lack. This holds per level; a test shows that the
// levels together terminate (fairness_test.cc).
//
// No function here changes a ledger. Pass the copy from the start of the search, so that the
// simulation does not change the answer. Resources besides CPU, memory and GPU take part only if
// they are involved. Thread-safety: pure functions. Complexity: O(victim pieces * depth *
// resources); a ReclaimTrial tests one piece more without looking at the others again.
#pragma once

#include <cstdint>
#include <memory>
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
  kOverQuota,             // a queue of the reclaimer would exceed its quota
  kVictimWithinItsShare,  // no right to take from that side
  kGivesNoExcess,         // a right for resources alone that neither request nor piece has
  kMoreSaturated,         // the reclaimer's side would be as saturated as the queue that has to
                          // give
};

// The reason of a refusal, for verdicts. `resource` has no meaning for kGivesNoExcess, and for
// kVictimWithinItsShare without rounding.
struct ReclaimAnswer {
  ReclaimRefusal refusal = ReclaimRefusal::kNone;
  QueueId queue = 0;
  model::ResourceIndex resource = 0;
  [[nodiscard]] bool allowed() const { return refusal == ReclaimRefusal::kNone; }
};

ReclaimAnswer CanReclaim(const ReclaimContext& context, const Reclaimer& reclaimer);

// The two rights, at the level where the paths diverge. `remaining`: what the victim's side holds
// after earlier pieces were subtracted. `involved`: what the request and the piece have together.
bool MaintainFairShare(const ReclaimContext& context, QueueId victim_side,
                       const model::Resources& remaining, const model::Resources& involved);
bool GuaranteeDeservedQuota(const ReclaimContext& context, const Reclaimer& reclaimer,
                            QueueId reclaimer_side, QueueId victim_side,
                            const model::Resources& remaining);

// True if a right could ever hold against this leaf. False: no workload of it need be considered.
bool MayEverReclaimFrom(const ReclaimContext& context, const Reclaimer& reclaimer,
                        QueueId victim_leaf);

struct VictimQueue {
  QueueId leaf = 0;
  std::vector<model::Resources> pieces;  // in the order in which they are taken
};
ReclaimAnswer Reclaimable(const ReclaimContext& context, const Reclaimer& reclaimer,
                          absl::Span<const VictimQueue> victims);

// A set of victims that grows piece by piece, as a search takes them.
//
// Ownership: borrows what the context refers to; nothing of it may change meanwhile.
// Thread-safety: one thread. Complexity: a piece costs O(depth * resources * queues that gave)
// while nothing is rounded, whatever was added before; O(all pieces) if pieces of queues that came
// later lose their right by it, or with rounding.
class ReclaimTrial {
 public:
  ReclaimTrial(const ReclaimContext& context, const Reclaimer& reclaimer);
  ~ReclaimTrial();
  ReclaimTrial(const ReclaimTrial&) = delete;
  ReclaimTrial& operator=(const ReclaimTrial&) = delete;

  // What Reclaimable() says about all pieces added so far and this one, which comes behind those of
  // its queue; queues are in the order of their first pieces. If it is refused, nothing is added.
  ReclaimAnswer Add(QueueId leaf, const model::Resources& piece);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::queues
