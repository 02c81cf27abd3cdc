// Construction, small tables, and the primitive that moves a pod.
#include "scheduler/state/cluster_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::state {

// The log of node changes is cut to this length; a reader that fell behind starts over.
constexpr size_t kNodeLogLength = 1 << 16;

const char* PodStatusName(PodStatus status) {
  switch (status) {
    case PodStatus::kPending: return "Pending";
    case PodStatus::kGated: return "Gated";
    case PodStatus::kPipelined: return "Pipelined";
    case PodStatus::kBinding: return "Binding";
    case PodStatus::kBound: return "Bound";
    case PodStatus::kRunning: return "Running";
    case PodStatus::kReleasing: return "Releasing";
    case PodStatus::kSucceeded: return "Succeeded";
    case PodStatus::kFailed: return "Failed";
  }
  return "Unknown";
}

ClusterState::ClusterState(StateOptions options) : options_(std::move(options)) {}
ClusterState::~ClusterState() = default;

PodId ClusterState::FindPod(absl::string_view ns, absl::string_view name) const {
  auto it = pod_index_.find(model::Key(ns, name));
  return it == pod_index_.end() ? kNoId : it->second;
}

NodeId ClusterState::FindNode(absl::string_view name) const {
  auto it = nodes_by_name_.find(name);
  return it == nodes_by_name_.end() ? kNoId : it->second;
}

WorkloadId ClusterState::FindGroup(absl::string_view ns, absl::string_view name) const {
  auto it = group_index_.find(model::Key(ns, name));
  return it == group_index_.end() ? kNoId : it->second;
}

void ClusterState::TouchNode(NodeId id) {
  ++version_;
  ++nodes_[id].version;
  node_log_.push_back(id);
  if (node_log_.size() > kNodeLogLength) {
    node_log_.pop_front();
    ++node_log_start_;
  }
}

void ClusterState::TouchWorkload(WorkloadId id) {
  ++version_;
  Workload& workload = workloads_[id];
  ++workload.version;
  if (workload.dirty) return;
  workload.dirty = true;
  dirty_workloads_.push_back(id);
}

std::vector<WorkloadId> ClusterState::TakeDirtyWorkloads() {
  std::vector<WorkloadId> taken;
  taken.swap(dirty_workloads_);
  std::sort(taken.begin(), taken.end());
  // An id may have been removed and dealt anew since: it is then listed twice.
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  for (WorkloadId id : taken) workloads_[id].dirty = false;
  return taken;
}

void ClusterState::ApplyToNode(const PodRecord& pod, PodStatus status, NodeId node_id, bool add) {
  if (node_id == kNoId) return;
  NodeInfo& node = nodes_[node_id];
  const model::Resources& requests = classes_[pod.pod_class].requests;
  auto apply = [&](model::Resources& to) {
    if (add) {
      to += requests;
    } else {
      to -= requests;
    }
  };
  if (status == PodStatus::kPipelined) apply(node.pipelined);
  if (HoldsNode(status)) {
    apply(node.used);
    if (status == PodStatus::kReleasing) apply(node.releasing);
    if (!pod.ours) {
      if (CountsForQueues(node)) {
        if (add) {
          total_for_queues_ -= requests;
        } else {
          total_for_queues_ += requests;
        }
      }
      apply(node.used_by_others);
    }
  }
}

size_t ClusterState::MovePod(PodId id, PodStatus status, NodeId node, size_t position) {
  PodRecord& pod = pods_[id];
  const bool on_node = HoldsNode(status) || status == PodStatus::kPipelined;
  FAIRLEAD_CHECK(on_node == (node != kNoId),
                 absl::StrCat("pod ", pod.ns, "/", pod.name, " ", PodStatusName(status)));
  const PodStatus former = pod.status;
  const NodeId former_node = pod.node;
  if (former == status && former_node == node) return kAtEnd;

  // Node totals. A change that holds the same room on the same node leaves the node untouched.
  const bool same_room = former_node == node && former_node != kNoId && HoldsNode(former) &&
                         HoldsNode(status) && former != PodStatus::kReleasing &&
                         status != PodStatus::kReleasing;
  size_t former_position = kAtEnd;
  if (!same_room) {
    ApplyToNode(pod, former, former_node, false);
    ApplyToNode(pod, status, node, true);
    if (former_node != node) {
      if (former_node != kNoId) {
        auto& list = nodes_[former_node].pods;
        auto it = std::find(list.rbegin(), list.rend(), id);
        FAIRLEAD_CHECK(it != list.rend(), absl::StrCat("pod ", pod.name, " not on its node"));
        former_position = static_cast<size_t>(list.rend() - it) - 1;
        list.erase(list.begin() + static_cast<ptrdiff_t>(former_position));
      }
      if (node != kNoId) {
        auto& list = nodes_[node].pods;
        const size_t at = std::min(position, list.size());
        list.insert(list.begin() + static_cast<ptrdiff_t>(at), id);
      }
    }
    if (former_node != kNoId) TouchNode(former_node);
    if (node != kNoId && node != former_node) TouchNode(node);
  }
  pod.status = status;
  pod.node = node;

  if (pod.workload != kNoId) {
    Workload& workload = workloads_[pod.workload];
    --workload.by_status[static_cast<int>(former)];
    ++workload.by_status[static_cast<int>(status)];
    TouchWorkload(pod.workload);
    if (listener_ != nullptr && IsAllocated(former) != IsAllocated(status)) {
      if (IsAllocated(status)) {
        listener_->OnAllocated(workload, pod);
      } else {
        listener_->OnReleased(workload, pod);
      }
    }
  }
  return former_position;
}

}  // namespace fairlead::state
