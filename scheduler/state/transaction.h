// Tries decisions on a ClusterState and takes them back. Whatever was not committed is undone,
// exactly: the state's Dump() after a roll-back equals the one before (property-tested).
//
//   Transaction txn(state);
//   auto mark = txn.Mark();
//   txn.Allocate(pod, node);
//   if (!good) txn.RollbackTo(mark);
//   txn.Commit();
//
// Nesting is by marks. Only one Transaction at a time may be open on a state, and no event may be
// applied meanwhile.
// Thread-safety: the state's. Complexity: each operation and its undo O(resources).
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

class Transaction {
 public:
  enum class OperationKind { kAllocate, kPipeline, kEvict };
  struct Operation {
    OperationKind kind;
    PodId pod = kNoId;
    NodeId node = kNoId;
    GpuPick gpu_groups = {};  // of kAllocate and kPipeline, for a pod that shares GPUs
  };
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

  [[nodiscard]] Checkpoint Mark() const { return log_.size(); }
  void RollbackTo(Checkpoint mark);
  // Ends the transaction; the operations stay in the state, and are returned in order.
  std::vector<Operation> Commit();
  // Ends it with the operations since `mark` in the state.
  [[nodiscard]] std::vector<Operation> OperationsSince(Checkpoint mark) const;

 private:
  struct Entry {
    Operation operation;
    PodStatus former_status;
    NodeId former_node;
    size_t former_position;  // in the former node's list
    GpuPick former_groups;
    ClusterState::HeldDevices former_devices;
  };
  void CheckPick(PodId pod, const GpuPick& pick) const;
  void Do(OperationKind kind, PodId pod, PodStatus status, NodeId node, GpuPick pick);
  friend void ReleasePromise(ClusterState& state, PodId pod);
  friend void WithdrawBinding(ClusterState& state, PodId pod);
  friend void ReturnVictim(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups);
  static void MoveBack(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups) {
    state.MovePod(pod, PodStatus::kReleasing, node, ClusterState::kAtEnd, &groups);
  }
  static void Release(ClusterState& state, PodId pod) {
    state.MovePod(pod, PodStatus::kPending, kNoId);
  }

  ClusterState& state_;
  std::vector<Entry> log_;
};

// Takes back a promise that was committed for this cycle only: kPipelined -> kPending (its former
// node's room is free again). For the end of a cycle.
void ReleasePromise(ClusterState& state, PodId pod);

// A binding that was decided and not sent is taken back for good: kReleasing (evicted by a
// committed transaction) or kPipelined (which had moved it) -> kPending.
void WithdrawBinding(ClusterState& state, PodId pod);

// A victim that was promised another place is still on its node until it has terminated:
// kPipelined -> kReleasing there. For the end of a cycle.
void ReturnVictim(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups);

}  // namespace fairlead::state
