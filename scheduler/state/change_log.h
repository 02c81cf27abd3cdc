// What changes in ClusterState's tables, one typed entry for each change of a row.
//
// Everything that is derived from the tables outside of ClusterState subscribes to these entries
// and reads nothing else to learn that a row is another one: the ledger of queues, fair share, the
// index of victims, what waits, node orders, trees of topologies, counters of plugins. Entries are
// told in the order in which they happen, to the subscribers in the order of their subscription,
// when the row is already as the entry says. An entry of a row that goes is told while the row is
// there.
//
// Undo is no exception: a Transaction keeps the entry of each of its moves, and RollbackTo() goes
// through them backwards and makes each undone, which tells the reversed entries.
//
// A subscriber that adds something up remembers what it added, and takes off the same: rows that an
// entry is about may have changed in more than one way meanwhile. A subscriber that renews what it
// derives only when it is asked keeps the ids of the rows until then (engine/node_changes.h).
//
// What is kept about one row, and is used only with that row at hand, may compare the version of
// the row instead (NodeInfo::version, DisruptionBudgets::Version): it grows in the statement that
// tells the entry. ClusterState::version() is the number of entries told: a snapshot of everything
// compares it.
//
// Thread-safety: the state's. An entry is told hundreds of thousands of times a second: it is
// small, nothing is allocated for it, and OnChange() has to be O(1) or O(log n). A subscriber is
// told only the kinds that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "scheduler/state/ids.h"
#include "scheduler/state/records.h"

namespace fairlead::state {

struct StateChange {
  enum class Kind : uint8_t {
    // The pod went from one status and node to another. A pod that appears comes from kPending
    // without a node; one that goes was put back there before.
    kPodMoved,
    // The pod counts against its queue (ClusterState::QueueOf, ChargeOf) from now on, or does no
    // more. If the amount or the queue changes, both are told, the second first.
    kPodCharged,
    kPodReleased,
    // Labels or `terminating` of a pod on a node are about to change; have changed. Both are told.
    kPodLabelsGo,
    kPodLabelsCome,
    // The last pod of the class goes, and with it the row: the id may be given to another class.
    kClassGone,
    // A plugin that has its answers from elsewhere has another one about some node for pods of the
    // class (ClusterState::AnswersChanged). Whatever is kept of answers for the class goes.
    kClassAnswers,
    // Something that a decision about the workload could depend on: its objects, its pods or their
    // status.
    kWorkload,
    // The row of the workload is about to go; it has no pods any more.
    kWorkloadGone,
    // What is on the node; or that, and its object, kind, usability or existence. The node may be
    // gone: then its row has no id.
    kNodeUsage,
    kNodeObject,
    // NodeInfo::name_rank of every node is another number, in the same order.
    kNodesRanked,
    // The topology appeared, or its levels or its fault changed; it is about to go.
    kTopology,
    kTopologyGone,
    // The queue object appeared, went, or says something else that decisions read. `reshaped`: the
    // set of queues, a parent link or the set of resources that queues name is another one.
    kQueue,
    // The PriorityClass appeared or says something else; it is about to go. Entries of the
    // workloads whose priority that changes follow.
    kPriorityClass,
    kPriorityClassGone,
    // The PodDisruptionBudget appeared, selects or allows something else, or other evictions count
    // against it; it is about to go.
    kBudget,
    kBudgetGone,
    // The object of the claim appeared or says something else that decisions read; or it is about
    // to go.
    kClaim,
    // The claim took, or gave back, devices of `to_node`, by the API server's word or by a
    // decision. Told for each node that the state knows; kNodeUsage of the node is told before it.
    kClaimDevices,
  };
  static constexpr size_t kKinds = static_cast<size_t>(Kind::kClaimDevices) + 1;
  Kind kind;
  PodStatus from_status = PodStatus::kPending, to_status = PodStatus::kPending;  // of pods
  bool reshaped = false;                                                         // of kQueue
  PodId pod = kNoId;
  WorkloadId workload = kNoId;  // of pods and workloads; of a pod of others none
  // Of kPodMoved both; of entries about nodes, labels and devices the node is `to_node`.
  NodeId from_node = kNoId, to_node = kNoId;
  // Of entries about classes (PodClassId), topologies (TopologyId), queues (queues::QueueId),
  // priority classes (PriorityClassId), budgets (BudgetId) and claims (ClaimRow::id).
  uint32_t row = kNoId;
};
static_assert(sizeof(StateChange) <= 24);

// A set of kinds.
class ChangeKinds {
 public:
  constexpr ChangeKinds(std::initializer_list<StateChange::Kind> kinds) {
    for (const StateChange::Kind kind : kinds) bits_ |= uint32_t{1} << static_cast<uint32_t>(kind);
  }
  static constexpr ChangeKinds All() {
    ChangeKinds all{};
    all.bits_ = ~uint32_t{0};
    return all;
  }
  [[nodiscard]] constexpr bool Has(StateChange::Kind kind) const {
    return (bits_ >> static_cast<uint32_t>(kind) & 1) != 0;
  }

 private:
  uint32_t bits_ = 0;
};

class StateSubscriber {
 public:
  virtual ~StateSubscriber() = default;
  virtual void OnChange(const StateChange& change) = 0;
  // What it is told; the same as long as it is subscribed.
  [[nodiscard]] virtual ChangeKinds Kinds() const { return ChangeKinds::All(); }
};

}  // namespace fairlead::state
