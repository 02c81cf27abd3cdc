// Puts the pods of one step of a workload on nodes, all or nothing, inside a transaction (KAI's
// rules, facts 3.5-3.8, 3.14).
//
// Each pod takes the best node: usable ones before those on order, then the score
// (framework/score_tiers.h: the plugins', plus idle before releasing room, the preferred topology
// level, and the node that the pod was nominated to), then the node's name. Where a set of the gang
// has a topology constraint, its pods and everything below it are tried in one candidate domain
// after another. A domain in which they start comes before one in which they would wait for a node
// on order.
//
// If that fails, or would let it wait, pods that are not alike are tried again in other orders and
// on other nodes (engine/packing.h); if that fails, sub-groups with constraints of their own are
// tried in another order and in other domains (sibling_sets.cc). Both have a bound for each gang
// and each cycle: beyond it a gang that is to start may miss room that is there. Promises (of
// victims' room) have the first attempt alone.
//
// Waiting is contagious: if a pod only gets room that is being released, and the pods of its set
// that got real room are too few for the set's minimum, the whole step is promised its places
// instead of starting.
//
// Thread-safety: the owner's thread. Complexity: what NodeOrders say for a pod without a topology
// constraint: a logarithm, also where other nodes matter by domains; one scan of the candidate
// nodes a pod for others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/engine/expected_capacity.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/node_order.h"
#include "scheduler/engine/nominated_nodes.h"
#include "scheduler/engine/reservation.h"
#include "scheduler/engine/topology.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/parts.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

struct Placement {
  bool placed = false;
  bool promised = false;               // placed, but the step has to wait for its places
  state::PodId failed = state::kNoId;  // not placed: the pod that found no node
  std::string topology_reason;         // not placed because of a topology constraint
  bool topology_invalid = false;       // which names a topology or level that does not exist
  bool topology_infeasible = false;    // no domain would have room even if it were empty
  // Somewhere there was room that is kept for this workload (reservation.h).
  state::WorkloadId kept_for = state::kNoId;
};

class Placer {
 public:
  enum class Mode {
    kStart,    // real room where it is the best, promises elsewhere
    kPromise,  // promises only: the room of victims that are still there
    // The same for a victim that gets another place. What is promised on a node is not idle then:
    // otherwise the next cycle would place the victim elsewhere, and it might be moved for ever.
    kMove,
  };

  Placer(state::ClusterState& state, const framework::Framework& framework,
         state::PartsOrder parts_order, NodeOrders::Limits limits = {})
      : state_(state),
        framework_(framework),
        feasibility_(state, framework),
        parts_order_(parts_order),
        changes_(state),
        expected_(state),
        now_(state, framework, changes_, framework::Capacity::kNow, limits),
        future_(state, framework, changes_, framework::Capacity::kFuture, limits),
        idle_(state, framework, changes_, framework::Capacity::kFuture, limits,
              NodeOrders::Holds::kIdle),
        topology_(state) {}

  // What it derives from the state; to be subscribed by its owner, in this order.
  [[nodiscard]] std::vector<state::StateSubscriber*> Subscribers() {
    return {&changes_, &expected_, &now_, &future_, &idle_, &topology_};
  }
  [[nodiscard]] const NodeChanges& node_changes() const { return changes_; }
  // The first difference between what it derives and a look at everything, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

  // On failure the transaction is as it was.
  Placement Place(state::Transaction& txn, const state::Workload& workload,
                  const TasksToAllocate& step, Mode mode, const NodeSetPtr& within = nullptr);
  // Promises a pod that was evicted in this transaction a place anywhere; false: there is none.
  bool Replace(state::Transaction& txn, const state::Workload& workload,
               const std::vector<state::PodId>& pods);
  // Promises places anywhere to as many of the pods as find one, one after another; returns the
  // others. Constraints of a topology are not asked: not for workloads that have any.
  std::vector<state::PodId> PromiseSome(state::Transaction& txn, const state::Workload& workload,
                                        const std::vector<state::PodId>& pods);

  // The same inside one domain of the topology constraint of a whole workload without other ones:
  // of those that `may_use` (by the values of the labels of its level) the one in which most of the
  // step's pods find a place. None: in no domain does any. At most kMaxRooms domains are tried.
  struct PromisedInDomain {
    std::vector<std::string> values;
    std::vector<state::PodId> others;
  };
  std::optional<PromisedInDomain> PromiseSomeInDomain(state::Transaction& txn,
                                                      const state::Workload& workload,
                                                      const TasksToAllocate& step,
                                                      TopologyIndex::MayUse may_use);

  // NodeOrders::NeverFits, also with all promises kept.
  [[nodiscard]] bool NeverFits(state::PodClassId pod_class) const {
    return future_.NeverFits(pod_class);
  }

  // Asked about every node from now on; not owned.
  void SetReservations(const Reservations* reservations) { reservations_ = reservations; }

  // Where pods wait again; null: wherever is best. Not owned.
  void SetPromises(NominatedNodes* promises) { nominated_ = promises; }

  // Filter evaluations, and what else counts as one (search_budget.h).
  [[nodiscard]] uint64_t work() const { return work_; }
  void AddWork(uint64_t work) { work_ += work; }
  [[nodiscard]] state::PartsOrder parts_order() const { return parts_order_; }
  void ResetWork() {
    work_ = 0;
    packing_tries_ = kMaxPackingTriesPerCycle;
  }

  // Placements that the second attempt for a gang, and all those of a cycle, may try. Of each of
  // its classes a gang looks at every node once before; where that is more, only the order is
  // changed.
  static constexpr int64_t kMaxPackingTries = 5000;
  static constexpr int64_t kMaxPackingTriesPerCycle = 50'000;
  static constexpr size_t kMaxRooms = 4;

 private:
  struct Choice {
    state::NodeId node = state::kNoId;
    bool now = false;  // room that is idle
    bool ordered = true;
    int64_t score = 0;
  };
  // A node on which the pod fits, at least when promises are kept.
  struct Candidate {
    Choice choice;  // its score is that of the node alone; kNoId: it does not fit
    bool fits_now = false;
    bool starts = false;  // fits now, and that is not kept for others
    bool kept = false;    // for others: not to be chosen
    [[nodiscard]] bool IsOpen() const { return choice.node != state::kNoId && !kept; }
  };
  // Where a part of the tree may go, and what the topology adds to the score there.
  struct Area {
    NodeSetPtr nodes;  // null: everywhere
    const absl::flat_hash_map<state::NodeId, int64_t>* preferred = nullptr;
  };
  // One call of Place.
  struct Attempt {
    state::Transaction& txn;
    const state::Workload& workload;
    Mode mode;
    Placement result;
    bool must_wait = false;

    // Where it stands, to come back to when a part of it is placed in another way.
    struct Checkpoint {
      state::Transaction::Checkpoint mark;
      bool must_wait = false, promised = false;
    };
    [[nodiscard]] Checkpoint Mark() const { return {txn.Mark(), must_wait, result.promised}; }
    void RollbackTo(const Checkpoint& stand) {
      txn.RollbackTo(stand.mark);
      must_wait = stand.must_wait;
      result.promised = stand.promised;
    }
    // Since then no pod had to be promised room.
    [[nodiscard]] bool StartsSince(const Checkpoint& stand) const {
      return must_wait == stand.must_wait && result.promised == stand.promised;
    }
  };

  bool PlaceSet(Attempt& attempt, const StepNode& node, const Area& area);
  static const model::TopologyConstraint& ConstraintOf(const state::Workload& workload,
                                                       const StepNode& node);
  // Of a part of the tree: the pods that are to be placed, and those of the same set and below that
  // have a place.
  struct PodsOfSet {
    std::vector<state::PodId> to_place, placed;
  };
  [[nodiscard]] PodsOfSet PodsOf(const state::Workload& workload, const StepNode& node) const;
  // All children of the part; a second attempt if that fails (sibling_sets.cc).
  bool PlaceChildren(Attempt& attempt, const StepNode& node, const Area& area);
  // The second attempt for the children from `next` on. False: nothing is changed.
  bool PlaceSiblings(Attempt& attempt, const std::vector<const StepNode*>& sets, size_t next,
                     const Area& area, int64_t& tries);
  // The same for one of them, which has a topology constraint.
  bool PlaceBoundSibling(Attempt& attempt, const std::vector<const StepNode*>& sets, size_t next,
                         const Area& area, int64_t& tries);
  // The children, those whose nodes are hardest to find first. Empty: another order is of no use.
  [[nodiscard]] std::vector<const StepNode*> HardestFirst(const state::Workload& workload,
                                                          const StepNode& node) const;
  // The part of the tree in the first of the domains that takes it.
  bool PlaceInDomains(Attempt& attempt, const StepNode& node, const Area& area,
                      std::vector<TopologyCandidate>& domains);
  // False, and nothing is changed, if it has no place there, or has to wait and `only_now`.
  bool PlaceInDomain(Attempt& attempt, const StepNode& node, const Area& area,
                     const TopologyCandidate& domain, bool only_now);
  // True if it could wait for a node on order in one of several domains.
  [[nodiscard]] bool AnyOnOrder(const std::vector<TopologyCandidate>& domains) const;
  // True if nodes are on order for the workload.
  bool OwnDomainsFirst(const state::Workload& workload, const model::TopologyConstraint& constraint,
                       std::vector<TopologyCandidate>& domains);
  // PlaceMembers, and a second attempt if that fails.
  bool PlacePart(Attempt& attempt, const StepNode& node, const Area& area);
  bool PlaceMembers(Attempt& attempt, const StepNode& node, const Area& area);
  bool PlaceOne(Attempt& attempt, state::PodId pod, const Area& area, bool& waits);
  // One after another as long as they find a place; the others.
  std::vector<state::PodId> PlaceSome(Attempt& attempt, const std::vector<state::PodId>& pods,
                                      const Area& area);
  // False: it cannot start there, and `only_now`.
  bool PlaceAt(Attempt& attempt, state::PodId pod, const Choice& choice, bool only_now);
  // Whether the pods got enough real room (attempt.must_wait, promised).
  void CheckGangMinimum(Attempt& attempt, const StepNode& node) const;
  // The pods of the part if a second attempt could do better; else none.
  [[nodiscard]] std::vector<state::PodId> Repackable(const state::Workload& workload,
                                                     const StepNode& node) const;
  // The second attempt. True: all have a place, and start if `only_now`. False: nothing is changed.
  bool Repack(Attempt& attempt, const StepNode& node, const std::vector<state::PodId>& pods,
              const Area& area, bool only_now);
  bool PlaceLargestFirst(Attempt& attempt, std::vector<state::PodId> pods, const Area& area,
                         bool only_now);
  bool PlaceAnyWay(Attempt& attempt, const std::vector<state::PodId>& pods, const Area& area,
                   bool only_now);
  Choice Best(state::PodId pod, Mode mode, const Area& area);
  // A pod that has to wait does so where it did before, if that is no later than `best`.
  Choice NominatedChoice(const state::PodRecord& pod, Mode mode, const Area& area,
                         const Choice& best);
  // False: a node on which a pod of the class would fit later is one on which it fits now.
  [[nodiscard]] bool MayWait(const state::PodClass& pod_class) const;
  // framework::NodeLocal(), remembered.
  bool IsNodeLocal(state::PodClassId pod_class);
  // None: the order of the class cannot say.
  std::optional<Choice> BestByOrder(state::PodClassId pod_class, Mode mode);
  // All nodes on which a pod of the class may go, by name.
  std::vector<Choice> AllChoices(state::PodClassId pod_class, Mode mode, const Area& area);
  Choice BestByScan(state::PodClassId pod_class, Mode mode, const Area& area);
  [[nodiscard]] Candidate Look(state::PodClassId pod_class, state::NodeId node, Mode mode,
                               const Area& area);
  [[nodiscard]] static bool Better(const Choice& a, const Choice& b);
  // The node's capacity is reserved for another workload than the requester.
  bool Kept(state::PodClassId pod_class, const state::NodeInfo& node, framework::Capacity capacity);
  void SetRequester(const state::Workload& workload);
  static void PromiseAllOf(state::Transaction& txn, state::Transaction::Checkpoint start);

  state::ClusterState& state_;
  const framework::Framework& framework_;
  const Feasibility feasibility_;
  const state::PartsOrder parts_order_;
  NodeChanges changes_;
  ExpectedCapacity expected_;
  NodeOrders now_, future_, idle_;  // `idle_` takes the place of `now_` for promises
  TopologyIndex topology_;
  const Reservations* reservations_ = nullptr;
  NominatedNodes* nominated_ = nullptr;
  // Of the call of Place or Replace that runs.
  std::optional<Reservations::Requester> requester_;  // none: nothing is kept
  state::WorkloadId kept_for_ = state::kNoId;
  uint64_t work_ = 0;
  struct NodeLocal {
    uint64_t serial = 0;  // of the class
    bool is = false;
  };
  std::vector<NodeLocal> node_local_;  // by PodClassId
  int64_t packing_tries_ = kMaxPackingTriesPerCycle;
};

}  // namespace fairlead::engine
