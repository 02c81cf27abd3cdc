// What changes in ClusterState's tables, one typed entry for each change of a row.
//
// Everything that is derived from the tables outside of ClusterState subscribes to these entries
// and reads nothing else to learn that a row is another one: the ledger of queues, the index of
// victims, what waits, counters of plugins. Entries are told in the order in which they happen, to
// the subscribers in the order of their subscription, when the row is already as the entry says.
// Undo is no exception: Transaction::RollbackTo() goes through its operations backwards and makes
// each undone, which tells the entries in reverse.
//
// A subscriber that adds something up remembers what it added, and takes off the same: rows that an
// entry is about may have changed in more than one way meanwhile.
//
// Thread-safety: the state's. An entry is told hundreds of thousands of times a second: it is
// small, nothing is allocated for it, and OnChange() has to be O(1) or O(log n).
#pragma once

#include <cstdint>

#include "scheduler/state/ids.h"
#include "scheduler/state/records.h"

namespace fairlead::state {

struct StateChange {
  enum class Kind : uint8_t {
    // The pod went from one status and node to another. A pod that appears comes from kPending
    // without a node; one that goes was put back there before.
    kPodMoved,
    // The pod counts against its queue (ClusterState::QueueOf, ChargeOf) from now on, or does no
    // more. Where the amount or the queue changes, both are told, the second first.
    kPodCharged,
    kPodReleased,
    // The labels of a pod on a node are about to be others; are others now. Both are told.
    kPodLabelsGo,
    kPodLabelsCome,
    // Something that a decision about the workload could depend on: its objects, its pods or their
    // status.
    kWorkload,
    // The row of the workload is about to go; it has no pods any more.
    kWorkloadGone,
    // What is on the node; or that, and its object, kind, usability or existence. The node may be
    // gone: then its row has no id.
    kNodeUsage,
    kNodeObject,
  };
  Kind kind;
  PodStatus from_status = PodStatus::kPending, to_status = PodStatus::kPending;  // of pods
  PodId pod = kNoId;
  WorkloadId workload = kNoId;  // of pods and workloads; of a pod of others none
  // Of kPodMoved both; of entries about nodes and labels the node is `to_node`.
  NodeId from_node = kNoId, to_node = kNoId;
};
static_assert(sizeof(StateChange) <= 24);

class StateSubscriber {
 public:
  virtual ~StateSubscriber() = default;
  virtual void OnChange(const StateChange& change) = 0;
};

}  // namespace fairlead::state
