#include "scheduler/state/transaction.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::state {

void Transaction::Do(OperationKind kind, PodId pod, PodStatus status, NodeId node) {
  const PodStatus former_status = state_.pod(pod).status;
  const NodeId former_node = state_.pod(pod).node;
  const size_t former_position = state_.MovePod(pod, status, node);
  log_.push_back({{kind, pod, node}, former_status, former_node, former_position});
}

void Transaction::Allocate(PodId pod, NodeId node) {
  FAIRLEAD_CHECK(state_.pod(pod).status == PodStatus::kPending,
                 absl::StrCat("allocating pod ", state_.pod(pod).name, " that is ",
                              PodStatusName(state_.pod(pod).status)));
  Do(OperationKind::kAllocate, pod, PodStatus::kBinding, node);
}

void Transaction::Pipeline(PodId pod, NodeId node) {
  const PodStatus status = state_.pod(pod).status;
  FAIRLEAD_CHECK(status == PodStatus::kPending || status == PodStatus::kReleasing,
                 absl::StrCat("promising a node to pod ", state_.pod(pod).name, " that is ",
                              PodStatusName(status)));
  Do(OperationKind::kPipeline, pod, PodStatus::kPipelined, node);
}

void Transaction::Evict(PodId pod) {
  const PodStatus status = state_.pod(pod).status;
  FAIRLEAD_CHECK(status == PodStatus::kBinding || status == PodStatus::kBound ||
                     status == PodStatus::kRunning,
                 absl::StrCat("evicting pod ", state_.pod(pod).name, " that is ",
                              PodStatusName(status)));
  Do(OperationKind::kEvict, pod, PodStatus::kReleasing, state_.pod(pod).node);
}

void Transaction::RollbackTo(Checkpoint mark) {
  while (log_.size() > mark) {
    const Entry& entry = log_.back();
    state_.MovePod(entry.operation.pod, entry.former_status, entry.former_node,
                   entry.former_position);
    log_.pop_back();
  }
}

std::vector<Transaction::Operation> Transaction::OperationsSince(Checkpoint mark) const {
  std::vector<Operation> operations;
  operations.reserve(log_.size() - mark);
  for (size_t i = mark; i < log_.size(); ++i) operations.push_back(log_[i].operation);
  return operations;
}

std::vector<Transaction::Operation> Transaction::Commit() {
  std::vector<Operation> operations = OperationsSince(0);
  log_.clear();
  return operations;
}

void ReleasePromise(ClusterState& state, PodId pod) {
  FAIRLEAD_CHECK(state.pod(pod).status == PodStatus::kPipelined,
                 absl::StrCat("pod ", state.pod(pod).name, " holds no promise"));
  Transaction::Release(state, pod);
}

}  // namespace fairlead::state
