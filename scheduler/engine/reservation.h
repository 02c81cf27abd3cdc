// Reservations: capacity that is kept for a gang that has waited long, and what may use that
// capacity meanwhile.
//
// Without reservations every workload that fits starts (KAI's behaviour). A gang that needs eight
// GPUs at once can then wait for ever behind a stream of jobs that need one. Off by default.
//
// Which workload gets one. In each leaf queue the first workload in queue order that
//   - is big: more than one pod at once, or at least `reserve_min_devices` GPUs,
//   - lacks nothing but capacity,
//   - had its turn (Workload::turn: its creation, or later if short jobs are served first)
//     `reserve_after` ago, and
//   - fits in the fair share of its queue and of every queue above.
// At most `max_reservations` exist at a time, granted in queue order. A reservation ends when the
// workload runs, no longer lacks capacity (a limit, nodes on order), or its queue's share has
// become too small for it.
//
// What a reservation does.
//  1. Nodes are chosen on which the gang will be able to run soonest. What is idle there, up to
//     what the gang needs, is kept: no other workload is placed on it, except as in 3. This lasts
//     as long as what the gang's queue holds and what is kept for the gang are together within the
//     fair share, here and above. So a reservation gives no queue more than it is entitled to. What
//     is kept is charged to no queue.
//  2. Workloads behind the gang in its own queue start only if the gang would still fit in the
//     queue's share beside them. Otherwise the queue's own small jobs would use up the share that
//     the gang waits for. They cause no evictions either.
//  3. Backfill: a workload may state how long it runs (annotation fairlead.dev/expected-duration on
//     its pods, or their activeDeadlineSeconds). Neither 1 nor 2 holds such a workload if it ends
//     before the gang's earliest start. The gang can start when the pods have ended whose capacity
//     it needs. Only pods that state a duration have a known end; if none does, no workload is let
//     in. Workloads before the gang in its own queue, with a higher priority, are never held.
//  Reclaim, preemption and consolidation go on by their own rules, on other capacity.
//
// When a node is free. A pod that states its duration ends when the duration is over. Any other
// pod, and one that has outlived its stated duration, is expected to run as long again as it has
// run. That guess is right for durations without a typical size, as those of training jobs are. So
// nodes are preferred on which everything is young. Every kReview the nodes are chosen again. They
// are changed only if the new nodes are expected in half the time at most: collected capacity is
// not given up for a small gain. A gang that was promised capacity (its victims are terminating)
// reserves that capacity.
//
// Not reserved for: shares of GPUs, gangs bound to a topology or to other pods, and workloads that
// run in part.
//
// Reservations are forgotten at a restart. The same rules find them again, because they read the
// workload's age, not the time for which this process has seen it wait.
//
// Ownership: borrows state, tree and framework. Thread-safety: the owner's thread. Determinism:
// total orders only; integers. Complexity: nothing while off; a node asked about O(1); choosing
// nodes O(nodes * pods a node) once a kReview for each reservation. Amounts over time are an index
// that says which node to try next; that the pod fits there then is the answer of a Hypothesis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "queues/fair_share.h"
#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/pending.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class Reservations {
 public:
  static constexpr absl::Duration kReview = absl::Minutes(5);

  Reservations(const ReservationOptions& options, state::ClusterState& state,
               const queues::QueueTree& tree, const framework::Framework& framework)
      : options_(options), state_(state), tree_(tree), framework_(framework) {}

  // ---- a cycle
  // Before anything is placed. `ledger` follows the cycle and, like `shares`, outlives it.
  void Begin(absl::Time now, const queues::QueueLedger& ledger, const queues::FairShares& shares);
  // What a workload still lacks at the end.
  struct UnmetRequest {
    state::WorkloadId workload = state::kNoId;
    queues::QueueId leaf = 0;
    const std::vector<state::PodId>* pods = nullptr;  // the step
    const model::Resources* request = nullptr;        // what the step is charged
    bool only_room = false;                           // a lack of room, and nothing promised
    bool may_reserve = true;                          // false: as "not reserved for" above
    std::vector<std::pair<state::PodId, state::NodeId>> promised;
  };
  // After promises were taken back. `lacks` in queue order.
  void Update(const std::vector<UnmetRequest>& lacks);
  // When something could be different although nothing changed.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Grows with every change in what is kept, and from which workloads: an answer "does not fit" of
  // another version may have become wrong.
  [[nodiscard]] uint64_t version() const { return version_; }

  // ---- questions in a cycle
  [[nodiscard]] bool any() const { return !held_.empty(); }
  // The workload that asks.
  struct Requester {
    const state::Workload* workload = nullptr;
    queues::QueueId leaf = PendingIndex::kNoQueue;
    absl::Time end = absl::InfiniteFuture();  // by its own word; infinite: it does not say
  };
  [[nodiscard]] Requester RequesterOf(const state::Workload& workload) const;
  // The workload that the node's room is kept for, if a pod of the class may not have what it would
  // take there for that reason alone; else kNoId.
  [[nodiscard]] state::WorkloadId KeptFor(const Requester& asker, const state::PodClass& pod_class,
                                          const state::NodeInfo& node,
                                          framework::Capacity capacity) const;
  // The workload of the same queue that must come first (rule 2), or kNoId.
  [[nodiscard]] state::WorkloadId BehindOf(const Requester& asker,
                                           const model::Resources& request) const;
  // Every reservation treats the workload as it treats most others.
  [[nodiscard]] bool IsOrdinary(const Requester& asker) const;

  // True if workloads behind `asker` in its queue with the same request and the same stated
  // duration are treated as `asker` is.
  [[nodiscard]] bool IsFirstOfEquals(const Requester& asker) const;

  // Workloads that room is kept for, in the order of being granted.
  [[nodiscard]] std::vector<state::WorkloadId> Owners() const;
  // On which room is kept, ascending.
  [[nodiscard]] std::vector<state::NodeId> Nodes() const;
  // "room is being kept: 12 of 16 GPUs on 2 nodes"; empty if the workload has no reservation.
  [[nodiscard]] std::string Describe(state::WorkloadId workload) const;
  // "held: kept for gang team-a/train"
  [[nodiscard]] std::string DescribeHold(state::WorkloadId kept_for) const;

 private:
  struct Target {
    state::NodeId node = state::kNoId;
    model::Resources need;
    bool active = false;  // within the fair share now
  };
  struct Reservation {
    state::WorkloadId owner = state::kNoId;
    std::string uid;
    queues::QueueId leaf = 0;
    QueueOrderKey key;
    std::vector<state::PodId> pods;
    model::Resources request;
    std::vector<Target> targets;                // the earliest first
    absl::Time ready = absl::InfiniteFuture();  // when all of them are expected to have room
    // Not before this, by what the pods there say. Renewed in every cycle.
    absl::Time earliest = absl::InfinitePast();
    absl::Time next_review = absl::InfinitePast();
  };
  struct Plan {
    std::vector<Target> targets;
    absl::Time ready = absl::InfinitePast();
  };

  [[nodiscard]] bool StillWanted(const Reservation& reservation) const;
  [[nodiscard]] bool WithinShare(queues::QueueId leaf, const model::Resources& amount,
                                 bool beside_allocated) const;
  void Activate(Reservation& reservation);
  void IndexTargets();
  // It has got its room in this cycle.
  [[nodiscard]] bool Served(const Reservation& reservation) const;
  // Exempt from what `reservation` keeps.
  [[nodiscard]] bool Exempt(const Requester& asker, const Reservation& reservation) const;
  // Workloads of the same request and stated duration are exempt too.
  [[nodiscard]] static bool EndsInTime(const Requester& asker, const Reservation& reservation) {
    return asker.end != absl::InfiniteFuture() && asker.end <= reservation.earliest;
  }
  // What of the need is idle on the node.
  [[nodiscard]] model::Resources KeptOn(const Target& target) const;
  // Whether the pod fits on the node once what ends there until then has ended, beside what
  // `what_if` has there already; it stays there if so, and what ends is gone.
  bool FitsAt(Hypothesis& what_if, state::PodClassId pod_class, state::NodeId node,
              absl::Time when) const;
  // None if they would not all find a node, ever.
  [[nodiscard]] std::optional<Plan> Choose(const std::vector<state::PodId>& pods,
                                           state::WorkloadId owner) const;
  void Review(Reservation& reservation);
  // The places that it was promised become its targets.
  void Follow(Reservation& reservation, const UnmetRequest& lack);
  enum class Guess : uint8_t { kLikely, kEarliest };
  // When all targets have room.
  [[nodiscard]] absl::Time ReadyOf(const Reservation& reservation, Guess guess) const;
  [[nodiscard]] absl::Time EndOf(const state::PodRecord& pod, Guess guess) const;
  [[nodiscard]] bool Reservable(const UnmetRequest& lack) const;

  const ReservationOptions options_;
  state::ClusterState& state_;  // changed in a Hypothesis alone
  const queues::QueueTree& tree_;
  const framework::Framework& framework_;
  const queues::QueueLedger* ledger_ = nullptr;
  const queues::FairShares* shares_ = nullptr;
  absl::Time now_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfiniteFuture();
  uint64_t version_ = 0;
  std::vector<Reservation> held_;  // in the order of being granted
  // Node -> which reservation, which target of it. A node is a target of one reservation at most.
  absl::flat_hash_map<state::NodeId, std::pair<size_t, size_t>> by_node_;
};

}  // namespace fairlead::engine
