// Tries decisions on a ClusterState and takes them back. Whatever was not committed is undone,
// exactly: the state's Dump() after a roll-back equals the one before (property-tested). A
// transaction is the part of the change log that can be reversed: it keeps the entry of each move
// of a pod, and a roll-back tells the reversed entries, last first.
//
//   Transaction txn(state);
//   auto mark = txn.Mark();
//   txn.Allocate(pod, node);
//   if (!good) txn.RollbackTo(mark);
//   txn.Commit();
//
// A transaction can also be about what does not exist: nodes, classes and pods that are rows of the
// tables until they are rolled back. They are never committed. Such a node is NodeKind::kVirtual:
// it counts for no queue, is in no topology and in no order of nodes, and its name sorts behind
// all real ones. Such a pod is no scheduler's and belongs to no workload; it can only be promised
// capacity (Pipeline), which counts for no queue either. Subscribers are told of both, so that
// counters over pods and nodes stay right.
//
// Nesting is by marks, or by a second Transaction that has ended before the first goes on. No event
// may be applied meanwhile.
// Thread-safety: the state's. Complexity: each operation and its undo O(resources).
#pragma once

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

class Transaction {
 public:
  enum class OperationKind {
    kAllocate,
    kPipeline,
    kEvict,
    kRemove,
    // Of what does not exist.
    kAddNode,
    kAddClass,
    kAddPod,
  };
  struct Operation {
    OperationKind kind;
    PodId pod = kNoId;
    NodeId node = kNoId;
    GpuPick parts = {};  // of kAllocate and kPipeline, for a pod that takes some (parts.h)
  };
  using Operations = absl::InlinedVector<Operation, 1>;  // most steps place one pod
  using Checkpoint = size_t;

  explicit Transaction(ClusterState& state) : state_(state) {}
  ~Transaction() { RollbackTo(0); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // `pick`: the GPU groups on that node (PickGpus) for a pod that shares GPUs, nothing for others.
  // kPending -> kBinding on `node`.
  void Allocate(PodId pod, NodeId node, GpuPick pick = {});
  // kPending -> kPipelined on `node`; also kReleasing (evicted in this transaction) -> kPipelined,
  // which re-places a victim.
  void Pipeline(PodId pod, NodeId node, GpuPick pick = {});
  // kBinding, kBound or kRunning -> kReleasing on its node; kPipelined -> kPending: the promise
  // goes.
  void Evict(PodId pod);
  // The pod leaves its node at once, as if it had ended: -> kPending without a node. Of any
  // scheduler; never committed.
  void Remove(PodId pod);

  // ---- what does not exist
  // A node like this under a name of its own; label kubernetes.io/hostname is that name unless the
  // node brings one. O(labels + resources).
  NodeId AddNode(const model::Node& node);
  // The class of a spec; it need not have pods. O(spec).
  PodClassId AddClass(const model::PodSpec& spec);
  // A pod of the class without a node. Its labels are the spec's labels_for_affinity. O(1).
  PodId AddPod(PodClassId pod_class);

  [[nodiscard]] Checkpoint Mark() const { return log_.size(); }
  void RollbackTo(Checkpoint mark);
  // Ends the transaction; the operations stay in the state, and are returned in order. What does
  // not exist has to be rolled back before.
  Operations Commit();
  // The operations since `mark`, in order.
  [[nodiscard]] Operations OperationsSince(Checkpoint mark) const;
  // `use(operation)` for each operation, in order.
  template <typename Use>
  void ForEachOperation(Use use) const {
    for (const Entry& entry : log_) use(entry.operation);
  }

 private:
  struct Entry {
    Operation operation;
    ClusterState::PodMove move;    // of operations on pods that there are
    PodClassId pod_class = kNoId;  // of kAddClass
  };
  void DoAdd(OperationKind kind, PodId pod, NodeId node, PodClassId pod_class);
  void Undo(const Entry& entry);
  void CheckPick(PodId pod, const GpuPick& pick) const;
  void Do(OperationKind kind, PodId pod, PodStatus status, NodeId node, GpuPick pick);
  friend void ReleasePromise(ClusterState& state, PodId pod);
  friend void WithdrawBinding(ClusterState& state, PodId pod);
  friend void ReturnVictim(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups,
                           const ZonePick& zones);
  static void MoveBack(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups,
                       const ZonePick& zones) {
    state.MovePod(pod, PodStatus::kReleasing, node, ClusterState::kAtEnd, &groups);
    state.RestoreZones(pod, zones);
  }
  // What its volumes are may have changed since it was decided.
  static void Reclass(ClusterState& state, PodId pod) { state.RefreshVolumesOf(pod); }
  static void Release(ClusterState& state, PodId pod) {
    state.MovePod(pod, PodStatus::kPending, kNoId);
    state.ForgetStart(pod);
  }

  ClusterState& state_;
  absl::InlinedVector<Entry, 1> log_;
  size_t not_to_commit_ = 0;  // entries of the log
};

// Takes back a promise that was committed for this cycle only: kPipelined -> kPending (its former
// node's capacity is free again). For the end of a cycle.
void ReleasePromise(ClusterState& state, PodId pod);

// A binding that was decided and not sent is taken back for good: kReleasing (evicted by a
// committed transaction) or kPipelined (which had moved it) -> kPending.
void WithdrawBinding(ClusterState& state, PodId pod);

// A victim that was promised another place is still on its node until it has terminated:
// kPipelined -> kReleasing there. For the end of a cycle.
void ReturnVictim(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups,
                  const ZonePick& zones = {});

}  // namespace fairlead::state
