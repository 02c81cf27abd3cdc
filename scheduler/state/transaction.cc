#include "scheduler/state/transaction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::state {

void Transaction::CheckPick(PodId pod, const GpuPick& pick) const {
  const int64_t devices = state_.class_of(pod).spec->gpu_share.IsSet()
                              ? state_.class_of(pod).spec->gpu_share.devices
                              : 0;
  FAIRLEAD_CHECK(
      static_cast<int64_t>(pick.size()) == devices,
      absl::StrCat("pod ", state_.pod(pod).name, " shares ", devices, " GPUs, not ", pick.size()));
}

void Transaction::Do(OperationKind kind, PodId pod, PodStatus status, NodeId node, GpuPick pick) {
  Entry& entry = log_.emplace_back();
  state_.MovePod(pod, status, node, ClusterState::kAtEnd,
                 status == PodStatus::kReleasing ? nullptr : &pick, &entry.move);
  entry.operation = {kind, pod, node, std::move(pick)};
}

void Transaction::Allocate(PodId pod, NodeId node, GpuPick pick) {
  FAIRLEAD_CHECK(state_.pod(pod).status == PodStatus::kPending,
                 absl::StrCat("allocating pod ", state_.pod(pod).name, " that is ",
                              PodStatusName(state_.pod(pod).status)));
  CheckPick(pod, pick);
  Do(OperationKind::kAllocate, pod, PodStatus::kBinding, node, std::move(pick));
}

void Transaction::Pipeline(PodId pod, NodeId node, GpuPick pick) {
  const PodStatus status = state_.pod(pod).status;
  FAIRLEAD_CHECK(status == PodStatus::kPending || status == PodStatus::kReleasing,
                 absl::StrCat("promising a node to pod ", state_.pod(pod).name, " that is ",
                              PodStatusName(status)));
  CheckPick(pod, pick);
  Do(OperationKind::kPipeline, pod, PodStatus::kPipelined, node, std::move(pick));
}

void Transaction::Evict(PodId pod) {
  const PodStatus status = state_.pod(pod).status;
  if (status == PodStatus::kPipelined) {
    Do(OperationKind::kEvict, pod, PodStatus::kPending, kNoId, {});
    return;
  }
  FAIRLEAD_CHECK(
      status == PodStatus::kBinding || status == PodStatus::kBound || status == PodStatus::kRunning,
      absl::StrCat("evicting pod ", state_.pod(pod).name, " that is ", PodStatusName(status)));
  Do(OperationKind::kEvict, pod, PodStatus::kReleasing, state_.pod(pod).node, {});
}

void Transaction::Remove(PodId pod) {
  FAIRLEAD_CHECK(state_.pod(pod).node != kNoId,
                 absl::StrCat("removing pod ", state_.pod(pod).name, " that has no node"));
  Do(OperationKind::kRemove, pod, PodStatus::kPending, kNoId, {});
  ++not_to_commit_;
}

void Transaction::DoAdd(OperationKind kind, PodId pod, NodeId node, PodClassId pod_class) {
  Entry entry{};
  entry.operation.kind = kind;
  entry.operation.pod = pod;
  entry.operation.node = node;
  entry.pod_class = pod_class;
  log_.push_back(std::move(entry));
  ++not_to_commit_;
}

NodeId Transaction::AddNode(const model::Node& node) {
  const NodeId id = state_.AddVirtualNode(node);
  DoAdd(OperationKind::kAddNode, kNoId, id, kNoId);
  return id;
}

PodClassId Transaction::AddClass(const model::PodSpec& spec) {
  const PodClassId id = state_.AddVirtualClass(spec);
  DoAdd(OperationKind::kAddClass, kNoId, kNoId, id);
  return id;
}

PodId Transaction::AddPod(PodClassId pod_class) {
  const PodId id = state_.AddVirtualPod(pod_class);
  DoAdd(OperationKind::kAddPod, id, kNoId, kNoId);
  return id;
}

void Transaction::Undo(const Entry& entry) {
  switch (entry.operation.kind) {
    case OperationKind::kAddNode:
      state_.DropVirtualNode(entry.operation.node);
      break;
    case OperationKind::kAddClass:
      state_.ReleaseClass(entry.pod_class);
      break;
    case OperationKind::kAddPod:
      state_.DropVirtualPod(entry.operation.pod);
      break;
    case OperationKind::kRemove:
    case OperationKind::kAllocate:
    case OperationKind::kPipeline:
    case OperationKind::kEvict:
      state_.ReverseMove(entry.move);
      if (entry.operation.kind != OperationKind::kRemove) return;
      break;
  }
  --not_to_commit_;
}

void Transaction::RollbackTo(Checkpoint mark) {
  while (log_.size() > mark) {
    Undo(log_.back());
    log_.pop_back();
  }
}

Transaction::Operations Transaction::OperationsSince(Checkpoint mark) const {
  Operations operations;
  operations.reserve(log_.size() - mark);
  for (size_t i = mark; i < log_.size(); ++i) operations.push_back(log_[i].operation);
  return operations;
}

Transaction::Operations Transaction::Commit() {
  FAIRLEAD_CHECK(not_to_commit_ == 0, "committing what does not exist");
  Operations operations;
  operations.reserve(log_.size());
  for (Entry& entry : log_) {
    const Operation& operation = operations.emplace_back(std::move(entry.operation));
    if (operation.kind == OperationKind::kAllocate) state_.NoteStart(operation.pod);
  }
  log_.clear();
  return operations;
}

void ReleasePromise(ClusterState& state, PodId pod) {
  FAIRLEAD_CHECK(state.pod(pod).status == PodStatus::kPipelined,
                 absl::StrCat("pod ", state.pod(pod).name, " holds no promise"));
  Transaction::Release(state, pod);
}

void WithdrawBinding(ClusterState& state, PodId pod) {
  const PodStatus status = state.pod(pod).status;
  FAIRLEAD_CHECK(status == PodStatus::kReleasing || status == PodStatus::kPipelined,
                 absl::StrCat("pod ", state.pod(pod).name, " was not taken back"));
  Transaction::Release(state, pod);
  Transaction::Reclass(state, pod);
}

void ReturnVictim(ClusterState& state, PodId pod, NodeId node, const GpuPick& groups,
                  const ZonePick& zones) {
  FAIRLEAD_CHECK(state.pod(pod).status == PodStatus::kPipelined,
                 absl::StrCat("pod ", state.pod(pod).name, " has no other place"));
  Transaction::MoveBack(state, pod, node, groups, zones);
}

}  // namespace fairlead::state
