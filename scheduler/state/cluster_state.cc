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
    case PodStatus::kPending:
      return "Pending";
    case PodStatus::kGated:
      return "Gated";
    case PodStatus::kPipelined:
      return "Pipelined";
    case PodStatus::kBinding:
      return "Binding";
    case PodStatus::kBound:
      return "Bound";
    case PodStatus::kRunning:
      return "Running";
    case PodStatus::kReleasing:
      return "Releasing";
    case PodStatus::kStuckInReleasing:
      return "StuckInReleasing";
    case PodStatus::kSucceeded:
      return "Succeeded";
    case PodStatus::kFailed:
      return "Failed";
  }
  return "Unknown";
}

ClusterState::ClusterState(StateOptions options)
    : options_(std::move(options)), pod_index_(0, PodIndexHash{&pods_}, PodIndexEqual{&pods_}) {}
ClusterState::~ClusterState() = default;

PodId ClusterState::FindPod(absl::string_view ns, absl::string_view name) const {
  const auto found = pod_index_.find(PodIndexHash::Name{ns, name});
  return found == pod_index_.end() ? kNoId : *found;
}

NodeId ClusterState::FindNode(absl::string_view name) const {
  auto it = nodes_by_name_.find(name);
  return it == nodes_by_name_.end() ? kNoId : it->second;
}

WorkloadId ClusterState::FindGroup(absl::string_view ns, absl::string_view name) const {
  auto it = group_index_.find(model::Key(ns, name));
  return it == group_index_.end() ? kNoId : it->second;
}

void ClusterState::Unsubscribe(StateSubscriber* subscriber) {
  subscribers_.erase(std::remove(subscribers_.begin(), subscribers_.end(), subscriber),
                     subscribers_.end());
}

void ClusterState::TellReleased(const PodRecord& pod) {
  Tell({.kind = StateChange::Kind::kPodReleased, .pod = pod.id, .workload = pod.workload});
}

void ClusterState::TellCharged(const PodRecord& pod) {
  Tell({.kind = StateChange::Kind::kPodCharged, .pod = pod.id, .workload = pod.workload});
}

void ClusterState::TouchNode(NodeId id, bool object) {
  ++version_;
  ++nodes_[id].version;
  if (object) ++nodes_[id].object_version;
  if (nodes_[id].kind != NodeKind::kVirtual) {
    node_log_.push_back(id);
    if (node_log_.size() > kNodeLogLength) {
      node_log_.pop_front();
      ++node_log_start_;
    }
  }
  Tell({.kind = object ? StateChange::Kind::kNodeObject : StateChange::Kind::kNodeUsage,
        .to_node = id});
}

void ClusterState::TouchWorkload(WorkloadId id) {
  ++version_;
  ++workloads_[id].version;
  Tell({.kind = StateChange::Kind::kWorkload, .workload = id});
}

void ClusterState::ApplyToNode(const PodRecord& pod, PodStatus status, NodeId node_id, bool add) {
  if (node_id == kNoId) return;
  NodeInfo& node = nodes_[node_id];
  const model::Resources& requests = classes_[pod.pod_class].requests;
  const auto apply = [](model::ResourceSum& to, const model::Resources& amount, bool plus) {
    if (plus) {
      to += amount;
    } else {
      to -= amount;
    }
  };
  if (status == PodStatus::kPipelined) apply(node.pipelined, requests, add);
  if (HoldsNode(status)) {
    apply(node.used, requests, add);
    if (status == PodStatus::kReleasing) apply(node.releasing, requests, add);
    if (!pod.ours) {
      apply(node.used_by_others, ChargeToOthers(pod, node), add);
      CountForQueues(node);
    }
  }
  if (!pod.gpu_groups.empty()) ApplyToGroups(pod, status, node, add);
}

size_t ClusterState::MovePod(PodId id, PodStatus status, NodeId node, size_t position,
                             const GpuPick* groups) {
  PodRecord& pod = pods_[id];
  const bool on_node = HoldsNode(status) || status == PodStatus::kPipelined;
  FAIRLEAD_CHECK(on_node == (node != kNoId),
                 absl::StrCat("pod ", pod.ns, "/", pod.name, " ", PodStatusName(status)));
  const PodStatus former = pod.status;
  const NodeId former_node = pod.node;
  static const auto& no_groups = *new GpuPick();
  if (node == kNoId) {
    groups = &no_groups;
  } else if (groups == nullptr) {
    groups = node == former_node ? &pod.gpu_groups : &no_groups;
  }
  GpuPick own;
  if (node != kNoId && groups->empty() && classes_[pod.pod_class].reservation) {
    own.push_back(GpuGroupId(pod.uid, nodes_[node].name(), 0));
    groups = &own;
  }
  FAIRLEAD_CHECK((node != kNoId && classes_[pod.pod_class].SharesGpu()) == !groups->empty(),
                 absl::StrCat("pod ", pod.ns, "/", pod.name, ": GPU groups and node"));
  const bool regroup = *groups != pod.gpu_groups;
  if (former == status && former_node == node && !regroup) return kAtEnd;

  // Node totals. A change that holds the same room on the same node leaves the node untouched.
  const bool same_room = former_node == node && former_node != kNoId && HoldsNode(former) &&
                         HoldsNode(status) && former != PodStatus::kReleasing &&
                         status != PodStatus::kReleasing && !regroup;
  size_t former_position = kAtEnd;
  if (!same_room) {
    ApplyToNode(pod, former, former_node, false);
    if (regroup) pod.gpu_groups = GpuPick(*groups);
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
  if (!pod_claims_.empty() && pod_claims_.contains(id)) {
    if (HoldsNode(former) && (!HoldsNode(status) || node != former_node)) ReleaseDevices(id);
    if (HoldsNode(status) && (!HoldsNode(former) || node != former_node)) TakeDevices(id);
  }

  if (pod.workload != kNoId) {
    Workload& workload = workloads_[pod.workload];
    --workload.by_status[static_cast<int>(former)];
    ++workload.by_status[static_cast<int>(status)];
    if (pod.set != kNoSet && IsAllocated(former) != IsAllocated(status)) {
      workload.active[static_cast<size_t>(pod.set)] += IsAllocated(status) ? 1 : -1;
    }
  }
  Tell({.kind = StateChange::Kind::kPodMoved,
        .from_status = former,
        .to_status = status,
        .pod = id,
        .workload = pod.workload,
        .from_node = former_node,
        .to_node = node});
  if (pod.workload != kNoId) {
    TouchWorkload(pod.workload);
    // What it is charged may depend on the node.
    const bool stays = IsAllocated(former) && IsAllocated(status) && former_node == node;
    if (IsAllocated(former) && !stays) TellReleased(pod);
    if (IsAllocated(status) && !stays) TellCharged(pod);
  }
  return former_position;
}

}  // namespace fairlead::state
